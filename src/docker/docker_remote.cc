// Containers of an engine on another host: it has none of this host's files, and no way leads to its networks
// but its own API. So execd is in a volume there, put into it once and shown to every container read-only;
// its secret comes by standard input of the container's first process, before that does anything; and a
// connection to execd is a program that the engine runs in the container (execd/join.h), on which both sides
// prove that they have the secret. Nothing is published, and nothing is said outside of the API's own TLS.
//
// A volume is believed to have execd in it only when a file of this server says so, which is written when the
// engine has confirmed the last byte. What a kill leaves half filled has a name that nobody uses again. One
// in which a container did not find execd is believed no longer: the next create fills another.

#include "base/cleanup.h"
#include "base/ids.h"
#include "base/log.h"
#include "docker/archive.h"
#include "docker/create_failures.h"
#include "docker/docker_sandbox.h"
#include "docker/durable.h"
#include "docker/knocking.h"

namespace osb::docker {
namespace {

using Kind = CreateFailure::Kind;

// On volumes with execd, and on containers that serve to fill one: whose they are, and the container's name.
constexpr char kBootOwnerLabel[] = "opensandbox.io/boot-of", kFillerLabel[] = "opensandbox.io/boot-filler";
constexpr size_t kSuffixDigits = 8;
constexpr auto kAttachDeadline = std::chrono::seconds(20);
// Less than a whole connection has: what is late then is the engine, and not the port.
constexpr auto kExecDeadline = std::chrono::seconds(15);

std::string machine_of_host() {
#if defined(__aarch64__)
  return "arm64";
#else
  return "amd64";
#endif
}

}  // namespace

// An engine that has other files than this host does not have what it was asked to show either: it is on
// another host, or this server is in a container. Where the configuration leaves it open, it counts as one on
// another host from then on.
bool DockerRuntime::sees_other_files(const Error& error, const std::string& path) {
  if (settings_.rules.remote || error.message.find(path) == std::string::npos) return false;
  bool is_missing = error.message.find("does not exist") != std::string::npos ||
                    error.message.find("no such file") != std::string::npos;
  if (!settings_.may_be_remote || !is_missing) return true;
  settings_.rules.remote = true;
  capabilities_ = docker_capabilities(abilities_with(settings_));
  log::info(
      "the Docker engine does not see the files of this service: its containers are reached through "
      "its API alone, as with docker.remote = true");
  return true;
}

// The volume that has execd in it, if it is still there. Somebody may have removed it, and a container that
// names it would get an empty one in its place, which has no label.
Task<Result<std::string>> DockerRuntime::find_boot_volume() {
  auto name = CO_TRY(files_.read_boot_volume());
  if (!name.starts_with(files_.boot_volume_prefix() + "-"))
    co_return fail(Code::not_found, "it has another execd");
  auto volume = CO_TRY(co_await engine_.volume(name));
  auto owner = volume.labels.find(kBootOwnerLabel);
  if (owner == volume.labels.end() || owner->second != owner_)
    co_return fail(Code::not_found, "the volume of this name is somebody else's");
  co_return name;
}

// It belongs to nobody who waits for it: one that is cancelled would leave a half behind.
struct DockerRuntime::Bringing {
  explicit Bringing(const io::Executor& executor) : done(executor) {}
  io::Event done;
  Result<std::string> volume = fail(Code::cancelled, "the server ends");
};

Task<Result<std::string>> DockerRuntime::ensure_boot_volume(std::string image) {
  while (true) {
    auto found = co_await find_boot_volume();
    if (found || is_away(found.error())) co_return found;
    bool first = !bringing_;
    if (first) {
      bringing_ = std::make_shared<Bringing>(executor_);
      tasks_.spawn(bring_execd(bringing_, image));
    }
    auto job = bringing_;
    co_await job->done.wait();
    // The image of another may be what was wrong.
    if (job->volume || first) co_return job->volume;
  }
}

Task<> DockerRuntime::bring_execd(std::shared_ptr<Bringing> job, std::string image) {
  // Also when this is cancelled: whoever waits is told.
  Cleanup over;
  over.push([this, job] {
    bringing_.reset();
    job->done.set();
  });
  co_await Turn::wait(busy_);
  Turn turn(busy_, executor_);
  // Somebody may have been here since it was found missing.
  job->volume = co_await find_boot_volume();
  if (!job->volume && !is_away(job->volume.error()))
    job->volume = co_await make_boot_volume(std::move(image));
}

Task<Result<std::string>> DockerRuntime::make_boot_volume(std::string image) {
  auto version = CO_TRY(co_await engine_.version());
  if (!version.machine.empty() && version.machine != machine_of_host())
    co_return fail(Code::unsupported, "the engine's machine is " + version.machine +
                                          ", and this server has execd for " + machine_of_host() +
                                          "; use an engine on a machine of that kind");
  std::string suffix = new_hex_id().substr(0, kSuffixDigits);
  std::string name = files_.boot_volume_prefix() + "-" + suffix;
  std::string filler = "opensandbox-filler-" + suffix;
  auto filled = co_await fill_boot_volume(name, filler, std::move(image));
  auto removed = co_await engine_.remove(filler);
  if (filled && !removed) filled = std::move(removed);
  if (filled) filled = co_await note_boot_volume(name);
  if (!filled) {
    (void)co_await engine_.remove_volume(name);
    co_return std::unexpected(std::move(filled.error()));
  }
  log::info("the engine has execd", {{"volume", name}});
  co_return name;
}

Task<Result<void>> DockerRuntime::keep_vital_files(std::string handle) {
  co_return co_await bring_to_disk(CO_TRY(files_.vital_files(handle)));
}

Task<Result<void>> DockerRuntime::note_boot_volume(std::string name) {
  CO_TRY(files_.write_boot_volume(name));
  co_return co_await bring_to_disk(CO_TRY(files_.vital_files()));
}

Task<Result<void>> DockerRuntime::fill_boot_volume(std::string name, std::string filler, std::string image) {
  CO_TRY(co_await engine_.create_volume(name, {{kBootOwnerLabel, owner_}}));
  // The image is anybody's: what it mounts itself, and its links, can lead to no name that it does not know.
  std::string inside = "/osb-" + new_hex_id();
  auto body = filler_body(image, name, inside, {{kBootOwnerLabel, owner_}, {kFillerLabel, filler}});
  auto container = CO_TRY(co_await engine_.create(filler, "", std::move(body)));
  co_return co_await engine_.unpack(container, inside, archive_of({{"execd", 0755, settings_.execd}}));
}

// What a server that was killed has left, and volumes of earlier versions that nothing uses any more.
Task<> DockerRuntime::sweep_boot_volumes() {
  co_await Turn::wait(busy_);
  Turn turn(busy_, executor_);
  std::string ours = std::string(kBootOwnerLabel) + "=" + owner_;
  auto containers = co_await engine_.labels_of_all(ours);
  if (!containers) co_return;
  for (const auto& labels : *containers) {
    if (auto name = labels.find(kFillerLabel); name != labels.end())
      (void)co_await engine_.remove(name->second);
  }
  auto volumes = co_await engine_.volumes_with(ours, Engine::Which::unused);
  if (!volumes) co_return;
  std::string current = settings_.rules.remote ? files_.read_boot_volume().value_or("") : "";
  for (const Volume& volume : *volumes) {
    if (volume.name != current) (void)co_await engine_.remove_volume(volume.name);
  }
}

// With its last container. An engine keeps one that another container has.
Task<> DockerRuntime::forget_boot_volume(std::string name) {
  if (name.empty() || name == files_.read_boot_volume().value_or("")) co_return;
  auto volume = co_await engine_.volume(name);
  if (!volume || !volume->labels.contains(kBootOwnerLabel) || volume->labels.at(kBootOwnerLabel) != owner_)
    co_return;
  (void)co_await engine_.remove_volume(name);
}

// Before the container is started. The end of what is returned is the end of its standard input.
Task<Result<std::unique_ptr<io::ForeignStream>>> DockerRuntime::hand_secret(std::string container,
                                                                            std::string secret) {
  auto input = CO_TRY(co_await io::with_deadline(kAttachDeadline, "the Docker engine",
                                                 engine_.attach_input(std::move(container))));
  CO_TRY(co_await io::with_deadline(kAttachDeadline, "the Docker engine", input->write_all(secret)));
  co_return input;
}

// Code::not_found: there is no way to execd now, which says nothing of the port that was wished for.
Task<Result<io::Stream>> DockerRuntime::knock_by_engine(SandboxPtr sandbox, knock::Wish wish) {
  auto no_way = [](const Error& error) { return fail(Code::not_found, error.message); };
  std::vector<std::string> words = {std::string(kBootInside) + "/execd", "--join"};
  auto stream = co_await io::with_deadline(kExecDeadline, "the Docker engine",
                                           engine_.exec(sandbox->container, std::move(words), sandbox->user));
  if (!stream) co_return no_way(stream.error());
  auto open = co_await knock_on(**stream, sandbox->secret, wish);
  if (!open) co_return no_way(open.error());
  if (!*open) co_return std::unexpected(nobody_at(wish));
  co_return io::Stream(std::move(*stream));
}

}  // namespace osb::docker
