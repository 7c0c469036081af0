#include "runtime/native/service.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "base/log.h"
#include "image/store.h"
#include "launcher/identity.h"
#include "launcher/settings.h"
#include "runtime/native/rootless.h"
#include "sys/caps.h"
#include "sys/memfd.h"

extern char** environ;

namespace osb::runtime {
namespace {

// Between the ranges that distributions and service managers assign. Earlier versions used one of them for
// all services.
constexpr uid_t kFirstUnnamed = 60'578, kLastUnnamed = 61'183, kEarlierUnnamed = 60'700;

Result<void> keep_across_exec(int fd) {
  if (::fcntl(fd, F_SETFD, 0) < 0) return fail_errno("pass a descriptor on");
  return {};
}

Result<void> drop_lost_images(const launcher::Settings& settings) {
  image::Store::Options store;
  store.state_dir = settings.state_dir;
  store.service_gid = settings.service_gid;
  store.lost = [](const std::string& name) {
    log::warn("an image was not completely on disk when the host stopped; import it again",
              {{"image", name}});
  };
  return image::drop_lost_images(std::move(store));
}

bool leave_to_engine(ServiceOptions& options) {
  if (!options.engine_is_enough || sys::has_capability(CAP_SYS_ADMIN)) return false;
  log::info("no right to make sandboxes here (CAP_SYS_ADMIN): all of them are containers of the engine");
  options.server.push_back(std::string("--cgroups=") + kNoSandboxesHere);
  return true;
}

// As whom the service runs, in a directory that is its own from here on.
Result<void> take_place(ServiceOptions& options, launcher::Settings& settings) {
  if (::geteuid() == 0) {
    TRY(check_not_rootless(settings.state_dir));
    // From here on the directory is ours; before this, nothing is made or changed anywhere.
    TRY(launcher::claim_state_dir(settings.state_dir, options.given_state_dir));
    ServiceAccount account = service_account(options.user, settings.state_dir);
    settings.service_uid = account.uid;
    settings.service_gid = account.gid;
    ServiceAccount egress = egress_account(account, settings.state_dir);
    settings.egress_uid = egress.uid;
    settings.egress_gid = egress.gid;
    settings.engine_only = leave_to_engine(options);
  } else {
    settings.rootless = true;
    if (const char* runtime = ::getenv("XDG_RUNTIME_DIR"); runtime && *runtime == '/')
      settings.runtime_dir = runtime;
    TRY(enter_rootless(settings.state_dir, options.given_state_dir));
    options.server.push_back("--rootless");
  }
  return {};
}

Result<void> exec_launcher(ServiceOptions options) {
  launcher::Settings settings;
  settings.state_dir = options.images.state_dir;
  TRY(take_place(options, settings));
  options.images.host_version = TRY(write_host_image(options.images.state_dir));
  TRY(drop_lost_images(settings));
  settings.sources = Images(options.images).sources();
  settings.server = std::move(options.server);
  settings.engine_gid = options.engine_gid;
  if (!settings.rootless) settings.engine_socket = std::move(options.engine_socket);
  settings.egress = std::move(options.egress);
  settings.shared_paths = std::move(options.shared_paths);
  settings.server.push_back("--host-image=" + options.images.host_version);

  Fd self = TRY(open_at(AT_FDCWD, "/proc/self/exe", O_RDONLY));
  Fd execd = TRY(sys::sealed_executable("execd", options.execd_bytes));
  Fd launcher = TRY(sys::sealed_executable("osb-launcher", options.launcher_bytes));
  settings.listener_fd = options.listener.get();
  settings.server_fd = self.get();
  settings.execd_fd = execd.get();
  Fd egress_program;
  if (!settings.egress.empty()) {
    egress_program = TRY(sys::sealed_executable("osb-egress", options.egress_bytes));
    settings.egress_fd = egress_program.get();
    TRY(keep_across_exec(settings.egress_fd));
  }
  if (options.notes.valid()) {
    settings.notes_fd = options.notes.get();
    TRY(keep_across_exec(settings.notes_fd));
  }
  if (options.runsc.valid()) {
    settings.runsc_fd = options.runsc.get();
    settings.runsc_platform = options.runsc_platform;
    TRY(keep_across_exec(settings.runsc_fd));
  }
  for (int fd : {settings.listener_fd, settings.server_fd, settings.execd_fd}) TRY(keep_across_exec(fd));

  std::vector<std::string> words = launcher::to_arguments(settings);
  std::vector<char*> arguments = {const_cast<char*>("osb-launcher")};
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::syscall(SYS_execveat, launcher.get(), "", arguments.data(), environ, AT_EMPTY_PATH);
  return fail_errno("start the launcher");
}

}  // namespace

ServiceAccount service_account(const std::string& user, const std::string& state_dir) {
  struct passwd* account = ::getpwnam(user.c_str());
  if (account && account->pw_uid != 0) return {account->pw_uid, account->pw_gid};
  struct stat database{};
  std::string path = state_dir + "/" + launcher::state::kDatabase;
  if (::stat(path.c_str(), &database) == 0 && database.st_uid >= kFirstUnnamed &&
      database.st_uid <= kLastUnnamed)
    return {database.st_uid, database.st_uid};
  auto identity = launcher::read_identity(state_dir);
  if (!identity) return {kEarlierUnnamed, kEarlierUnnamed};
  uid_t count = kLastUnnamed - kFirstUnnamed + 1, hash = 0;
  for (char digit : identity->id) hash = hash * 31 + static_cast<unsigned char>(digit);
  for (uid_t i = 0; i < count; ++i) {
    uid_t uid = kFirstUnnamed + (hash % count + i) % count;
    if (!::getpwuid(uid)) return {uid, uid};
  }
  return {kEarlierUnnamed, kEarlierUnnamed};
}

ServiceAccount egress_account(const ServiceAccount& server, const std::string& state_dir) {
  struct stat directory{};
  std::string path = state_dir + "/" + launcher::state::kEgress;
  if (::stat(path.c_str(), &directory) == 0 && directory.st_uid >= kFirstUnnamed &&
      directory.st_uid <= kLastUnnamed && directory.st_uid != server.uid)
    return {directory.st_uid, directory.st_uid};
  auto identity = launcher::read_identity(state_dir);
  uid_t count = kLastUnnamed - kFirstUnnamed + 1, hash = 7;
  for (char digit : identity ? identity->id : "") hash = hash * 37 + static_cast<unsigned char>(digit);
  for (uid_t i = 0; i < count; ++i) {
    uid_t uid = kFirstUnnamed + (hash % count + i) % count;
    if (uid != server.uid && uid != kEarlierUnnamed && !::getpwuid(uid)) return {uid, uid};
  }
  return server;
}

Error become_service(ServiceOptions options) {
  return std::move(exec_launcher(std::move(options)).error()).in("start the service");
}

}  // namespace osb::runtime
