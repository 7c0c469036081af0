#include "cli/occasion.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/strings.h"
#include "cli/api.h"
#include "cli/values.h"
#include "server/config.h"

namespace osb::cli {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr auto kStartTime = 20s;
constexpr Steady::duration kLockTime = 60s;   // somebody else starts or ends it
constexpr Steady::duration kGlanceTime = 2s;  // for who only looks, as a shell that completes a word
constexpr auto kLastWordsTime = 5s;
constexpr auto kLook = 2ms;
constexpr const char* kName = "/osb-occasion";

// Somebody who configured a server means that one, with its rules: ours would have none of them.
Result<void> check_unconfigured() {
  std::string path = server::config_path(std::nullopt, [](const char* name) { return std::getenv(name); });
  const char* named = std::getenv("SANDBOX_CONFIG_PATH");
  if ((!named || !*named) && ::access(path.c_str(), F_OK) < 0) return {};
  return fail(Code::unavailable,
              "SERVER::UNREACHABLE: your server does not run\n  cause: there is a configuration of a server, "
              "so none is started without it\n  remedy: start it with: osb server start --detach");
}

Task<Result<Fd>> take_lock(const OccasionPlace& place, Steady::duration patience) {
  auto until = Steady::now() + patience;
  while (true) {
    auto lock = CO_TRY(try_lock(place.lock()));
    if (lock) co_return std::move(*lock);
    if (Steady::now() > until)
      co_return fail(Code::timeout, "another osb starts or ends the server, and does not come to an end");
    co_await io::sleep_for(kLook);
  }
}

// Held by every process that uses it, until that ends: whoever would end the server finds it taken.
void note_use(const OccasionPlace& place) {
  static Fd use;
  if (use.valid()) return;
  auto file = open_at(AT_FDCWD, place.users(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!file) return;
  // Who looks for users holds it for a moment.
  if (::flock(file->get(), LOCK_SH) == 0) use = std::move(*file);
}

Connection with_record(Connection usual, const ServiceRecord& record) {
  usual.server = {.host = "127.0.0.1", .port = record.port, .prefix = "", .tls = false};
  usual.api_key = record.key;
  return usual;
}

// The lock goes with the new process.
Result<pid_t> start_keeper(const OccasionPlace& place, const Fd& lock) {
  Fd log = TRY(open_at(AT_FDCWD, place.log(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW, 0600));
  Fd null = TRY(open_at(AT_FDCWD, "/dev/null", O_RDONLY));
  std::string word = fmt::format("--lock={}", lock.get());
  const char* words[] = {"osb", "occasion", word.c_str(), nullptr};
  pid_t pid = ::fork();
  if (pid < 0) return fail_errno("fork");
  if (pid > 0) return pid;
  ::setsid();
  ::dup2(null.get(), 0);
  ::dup2(log.get(), 1);
  ::dup2(log.get(), 2);
  ::fcntl(lock.get(), F_SETFD, 0);
  ::execv("/proc/self/exe", const_cast<char* const*>(words));
  ::_exit(126);
}

// What the server said before it ended: the first line has the cause.
std::string last_words(const OccasionPlace& place) {
  auto text = read_file(place.log(), 64 << 10);
  std::string_view words = text ? trim(*text) : std::string_view();
  if (words.size() > 600) words.remove_prefix(words.size() - 600);
  return std::string(words);
}

Error not_started(const OccasionPlace& place) {
  return {Code::unavailable, 0,
          fmt::format("SERVER::UNREACHABLE: no server answers, and none could be started for the occasion\n  "
                      "cause: {}\n  remedy: osb doctor says what this machine lacks; or name a server with "
                      "--server HOST:PORT or OPEN_SANDBOX_DOMAIN",
                      last_words(place))};
}

bool has_ended(pid_t child) { return ::waitpid(child, nullptr, WNOHANG) == child; }

Task<Result<ServiceRecord>> start(const OccasionPlace& place, Fd lock) {
  pid_t keeper = CO_TRY(start_keeper(place, lock));
  lock.reset();
  auto until = Steady::now() + kStartTime;
  while (true) {
    if (auto record = read_record(place.record())) co_return std::move(*record);
    if (has_ended(keeper) || Steady::now() > until) co_return std::unexpected(not_started(place));
    co_await io::sleep_for(kLook);
  }
}

// One that gives up closes its listener before it says why: its words are whole when it has ended.
Task<void> until_ended(const ServiceRecord& record) {
  auto until = Steady::now() + kLastWordsTime;
  while (is_alive(record) && Steady::now() < until) co_await io::sleep_for(kLook);
}

// Connections wait in the kernel until the server takes them.
Task<Result<void>> until_healthy(const OccasionPlace& place, const ServiceRecord& record, Connection to) {
  to.occasion = Occasion::none;
  Api api(std::move(to));
  auto healthy = co_await api.health();
  if (healthy) co_return Result<void>();
  if (healthy.error().code == Code::timeout) co_return std::unexpected(healthy.error());
  co_await until_ended(record);
  co_return std::unexpected(not_started(place));
}

}  // namespace

Result<OccasionPlace> occasion_place() {
  if (::geteuid() == 0) return OccasionPlace{std::string("/var/lib") + kName};
  server::NativeSection native;
  std::string usual =
      TRY(server::choose_state_dir(native, false, [](const char* name) { return std::getenv(name); }));
  return OccasionPlace{usual.substr(0, usual.rfind('/')) + kName};
}

std::chrono::seconds occasion_idle() {
  const char* text = std::getenv("OPEN_SANDBOX_SERVER_IDLE");
  auto given = text && *text ? parse_duration(text) : fail(Code::not_found, "");
  return given ? std::chrono::ceil<std::chrono::seconds>(*given) : 600s;
}

Task<Result<Connection>> occasion_server(Connection usual) {
  OccasionPlace place = CO_TRY(occasion_place());
  std::error_code error;
  if (usual.occasion == Occasion::start) std::filesystem::create_directories(place.directory, error);
  if (error) co_return fail_errno("make " + place.directory, error.value());
  Fd lock = CO_TRY(co_await take_lock(place, usual.occasion == Occasion::start ? kLockTime : kGlanceTime));
  if (auto record = read_record(place.record())) {
    // Used now: whoever ends it looks at this under the lock.
    note_use(place);
    ::utimensat(AT_FDCWD, place.record().c_str(), nullptr, 0);
    co_return with_record(std::move(usual), *record);
  }
  if (usual.occasion != Occasion::start) co_return fail(Code::not_found, "no server runs");
  CO_TRY(check_unconfigured());
  note_use(place);
  auto record = CO_TRY(co_await start(place, std::move(lock)));
  Connection to = with_record(std::move(usual), record);
  CO_TRY(co_await until_healthy(place, record, to));
  fmt::print(stderr,
             "osb: no server answers, so one was started for the occasion at {}; it ends {} after its last "
             "use, or with: osb server stop\n",
             to.server.authority(), print_duration(occasion_idle()));
  co_return to;
}

}  // namespace osb::cli
