// Policies of containers on another host, where this service's egress process is not. A container beside the
// sandbox, of an image that the operator names (egress.image; `osb egress serve` or another that keeps the
// same contract), has the network and the right to make its packet rules; the sandbox's container shares the
// network and has neither. It denies everything until it is told the policy, which is before the entry
// process starts, and when it ends nothing leaves any more.
//
// The two are one: it stands still with the sandbox, and goes on before it.
//
// It is spoken to by a program that the engine runs in it. Whoever is policed reaches the same port, so a
// token is asked for. Nothing in the sandbox's container ever has it, nor anything that it comes from: the
// secret of its execd goes to whatever is its first process, which an image may have put there itself.

#include "base/last_words.h"
#include "base/log.h"
#include "base/shown.h"
#include "docker/archive.h"
#include "docker/create_failures.h"
#include "docker/docker_sandbox.h"
#include "http/client.h"
#include "runtime/network_policy_json.h"

namespace osb::docker {
namespace {

using Kind = CreateFailure::Kind;

constexpr auto kReadyDeadline = std::chrono::seconds(30), kAnswerDeadline = std::chrono::seconds(20);
constexpr io::Duration kAgain = std::chrono::milliseconds(200);
constexpr size_t kMostAnswer = 4 << 20;
constexpr char kAuthHeader[] = "OPENSANDBOX-EGRESS-AUTH";
constexpr char kDenyAll[] = R"({"defaultAction":"deny","egress":[]})";

constexpr char kEgressPaused[] = "the egress of the sandbox is paused with it";

std::unexpected<CreateFailure> failed(Error error, std::string_view step) {
  bool away = is_away(error);
  return std::unexpected(
      CreateFailure{away ? Kind::unavailable : Kind::step_failed, std::move(error).in(step)});
}

std::string lines_of(const std::vector<std::string>& targets) {
  std::string out;
  for (const std::string& target : targets) out += target + "\n";
  return out;
}

std::vector<std::string> environment_of(const EgressSettings& settings, const std::string& id,
                                        const std::string& token) {
  auto variable = [](std::string_view name, std::string_view value) {
    return std::string("OPENSANDBOX_EGRESS_").append(name).append("=").append(value);
  };
  std::vector<std::string> out = {variable("RULES", kDenyAll), variable("TOKEN", token),
                                  variable("SANDBOX_ID", id), variable("MODE", "dns+nft"),
                                  variable("HTTP_ADDR", "127.0.0.1:18080")};
  std::string servers;
  for (const std::string& one : settings.name_servers) servers.append(servers.empty() ? "" : ",").append(one);
  if (!servers.empty()) out.push_back(variable("DNS_UPSTREAM", servers));
  if (!settings.deny_webhook.empty()) out.push_back(variable("DENY_WEBHOOK", settings.deny_webhook));
  return out;
}

}  // namespace

std::string DockerRuntime::egress_token(const std::string& handle) const {
  auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end()) return "";
  if (found->second->others_egress) return *found->second->others_egress;
  if (!found->second->by_engine() || !found->second->has_policy) return "";
  return found->second->token;
}

// Its id. It is the operator's, and none of the client's business; nor is it pulled for every create,
// whatever that is to do with images of clients.
Task<Created<std::string>> DockerRuntime::find_egress_image(std::string handle) {
  auto image = co_await pulls_.find(
      std::move(handle), {.reference = settings_.sidecars->image, .pull = ImageRequest::Pull::if_missing});
  if (image) co_return std::move(image->id);
  auto kind = image.error().kind == Kind::unavailable ? Kind::unavailable : Kind::step_failed;
  co_return std::unexpected(
      CreateFailure{kind, std::move(image.error().error).in("the image of its egress (egress.image)")});
}

// Returns when it answers: from then on nothing leaves the network.
Task<Created<std::string>> DockerRuntime::start_sidecar(const runtime::SandboxSpec& spec, std::string image,
                                                        std::string boot, std::string token) {
  const std::string& handle = spec.handle;
  const EgressSettings& egress = *settings_.sidecars;
  std::string id = spec.id.empty() ? handle : spec.id;
  Sidecar sidecar{.image_id = std::move(image),
                  .handle = handle,
                  .id = id,
                  .owner = owner_,
                  .boot = std::move(boot),
                  .environment = environment_of(egress, id, token)};
  bool misnamed = false;  // when that of the sandbox's other container is: see name_after()
  auto made = co_await create_under_name(sidecar_name(id), handle, "", sidecar_body(sidecar, settings_.rules),
                                         misnamed);
  if (!made) co_return failed(std::move(made.error()), "create the egress of the sandbox");
  // The operator's lists, which come before every policy.
  std::string deny = lines_of(egress.deny_always), allow = lines_of(egress.allow_always);
  auto placed = co_await engine_.unpack(*made, "/",
                                        archive_of({{"var/egress/rules/deny.always", 0644, deny},
                                                    {"var/egress/rules/allow.always", 0644, allow}}));
  if (!placed) co_return failed(std::move(placed.error()), "give the egress of the sandbox its lists");
  auto started = co_await engine_.start(*made);
  if (started) started = co_await await_sidecar(*made, token, sidecar.boot);
  if (!started) co_return failed(std::move(started.error()), "start the egress of the sandbox");
  co_return std::move(*made);
}

Task<Result<void>> DockerRuntime::await_sidecar(std::string sidecar, std::string token, std::string boot) {
  auto until = std::chrono::steady_clock::now() + kReadyDeadline;
  while (true) {
    auto answer = co_await ask_sidecar(sidecar, token, "GET", "/healthz", "");
    if (answer) co_return Result<void>();
    auto there = CO_TRY(co_await engine_.inspect(sidecar));
    if (!there.running) {
      auto said = co_await engine_.logs(there.id);
      co_return fail(Code::internal, "it has ended; its last words: " + last_words(said.value_or(""), "; "));
    }
    if (std::chrono::steady_clock::now() > until) {
      // It runs, and nobody came to it.
      files_.distrust_boot_volume(boot);
      co_return std::unexpected(std::move(answer.error()));
    }
    co_await io::sleep_for(kAgain);
  }
}

Task<Result<io::Stream>> DockerRuntime::connect_sidecar(std::string sidecar) {
  std::vector<std::string> words = {std::string(kBootInside) + "/execd", "--join",
                                    "--port=" + std::to_string(runtime::kEgressPort)};
  auto stream = co_await engine_.exec(sidecar, std::move(words));
  if (stream) co_return io::Stream(std::move(*stream));
  if (is_away(stream.error())) co_return std::unexpected(std::move(stream.error()));
  auto there = co_await engine_.inspect(sidecar);
  if (there && there->running && !there->paused) co_return std::unexpected(std::move(stream.error()));
  if (!there && there.error().code != Code::not_found) co_return std::unexpected(std::move(there.error()));
  co_return fail(Code::wrong_state, there && there->paused ? kEgressPaused : kEgressEnded);
}

// What it answers; a refusal is an error.
Task<Result<std::string>> DockerRuntime::ask_sidecar(std::string sidecar, std::string token,
                                                     std::string method, std::string path, std::string body) {
  auto stream = CO_TRY(
      co_await io::with_deadline(kAnswerDeadline, "the egress of the sandbox", connect_sidecar(sidecar)));
  co_return co_await ask_egress(std::move(stream), std::move(token), std::move(method), std::move(path),
                                std::move(body));
}

Task<Result<std::string>> DockerRuntime::ask_egress(io::Stream stream, std::string token, std::string method,
                                                    std::string path, std::string body) {
  http::ClientConnection connection(CO_TRY(io::to_socket(std::move(stream), executor_, tasks_)));
  http::RequestHead head{std::move(method), std::move(path), true, {}};
  head.headers.set("Host", "egress");
  head.headers.set(kAuthHeader, std::move(token));
  if (!body.empty()) head.headers.set("Content-Type", "application/json");
  auto answer = CO_TRY(
      co_await io::with_deadline(kAnswerDeadline, "the egress of the sandbox",
                                 http::fetch(connection, std::move(head), std::move(body), kMostAnswer)));
  if (answer.head.status >= 300) co_return fail(Code::internal, "it refuses: " + shown(answer.body));
  co_return std::move(answer.body);
}

Task<Result<void>> DockerRuntime::tell_sidecar(SandboxPtr sandbox, runtime::NetworkPolicy policy) {
  CO_TRY(co_await ask_sidecar(sandbox->sidecar, sandbox->token, "POST", "/policy", runtime::to_json(policy)));
  co_return Result<void>();
}

Task<Result<std::string>> DockerRuntime::ask_for_policy(SandboxPtr sandbox) {
  return ask_sidecar(sandbox->sidecar, sandbox->token, "GET", "/policy", "");
}

Task<Result<std::optional<runtime::NetworkPolicy>>> DockerRuntime::sidecars_policy(SandboxPtr sandbox) {
  co_await Turn::wait(sandbox->egress_turn);
  Turn turn(sandbox->egress_turn, executor_);
  auto answer = co_await ask_for_policy(sandbox);
  if (!answer && answer.error().code == Code::wrong_state && answer.error().message == kEgressPaused) {
    // It wakes for as long as it takes to say it. Who could use that stands still.
    CO_TRY(co_await engine_.unpause(sandbox->sidecar));
    answer = co_await ask_for_policy(sandbox);
    if (auto again = co_await engine_.pause(sandbox->sidecar); !again)
      log::warn("the egress of a paused sandbox is awake", {{"error", again.error().message}});
  }
  auto text = CO_TRY(std::move(answer));
  // While it runs the port is its own. When it has ended, anybody in there can have answered in its place.
  auto there = CO_TRY(co_await engine_.inspect(sandbox->sidecar));
  if (!there.running) co_return fail(Code::unavailable, "the egress of the sandbox has ended");
  co_return std::optional(CO_TRY(policy_in(text)));
}

Result<runtime::NetworkPolicy> policy_in(std::string_view answer) {
  auto value = TRY(json::parse(answer));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "answer", json::Reading::lenient);
  auto policy = runtime::read_policy(field["policy"]);
  if (!issues.empty()) return fail(Code::corrupt, "an odd answer of the egress of the sandbox");
  return policy;
}

// The container beside this one, which may be the original server's; Code::not_found: none.
Task<Result<Container>> DockerRuntime::sidecar_of(const Container& sandbox) {
  const Labels& labels = sandbox.labels;
  if (!labels.contains(kOwnerLabel)) co_return co_await find_sidecar(labels.at(kIdLabel));
  auto boot = labels.find(kBootLabel), egress = labels.find(kEgressLabel);
  bool policed = egress != labels.end() && egress->second == kWithPolicy;
  if (!policed || boot == labels.end() || boot->second.empty())
    co_return fail(Code::not_found, "nothing is beside it");
  co_return co_await engine_.inspect(shared_network(sandbox));
}

// After the sandbox's own container. What has ended needs no pause, and the sandbox goes on without it: its
// network is closed, and what it has is not to be locked away.
Task<Result<void>> DockerRuntime::pause_sidecar(const Container& sandbox) {
  auto sidecar = co_await sidecar_of(sandbox);
  if (!sidecar && sidecar.error().code == Code::not_found) co_return Result<void>();
  if (!sidecar) co_return std::unexpected(std::move(sidecar.error()));
  if (!sidecar->running || sidecar->paused) co_return Result<void>();
  co_return co_await engine_.pause(sidecar->id);
}

// Before the sandbox's own container, which has no network without.
Task<Result<void>> DockerRuntime::resume_sidecar(const Container& sandbox) {
  auto sidecar = co_await sidecar_of(sandbox);
  if (!sidecar && sidecar.error().code == Code::not_found) co_return Result<void>();
  if (!sidecar) co_return std::unexpected(std::move(sidecar.error()));
  if (!sidecar->paused) co_return Result<void>();
  co_return co_await engine_.unpause(sidecar->id);
}

// For one that is taken over: it may have ended while nobody listened.
Task<> DockerRuntime::look_at_sidecar(SandboxPtr sandbox) {
  auto there = co_await engine_.inspect(sandbox->sidecar);
  bool ended = there ? !there->running : there.error().code == Code::not_found;
  if (ended) tell_sidecar_end(sandbox->handle);
}

// Fine when there is none.
Task<Result<void>> DockerRuntime::remove_sidecar(std::string handle) {
  auto there = co_await look_up_sidecar(std::move(handle));
  if (!there && there.error().code == Code::not_found) co_return Result<void>();
  if (!there) co_return std::unexpected(std::move(there.error()));
  co_return co_await engine_.remove(std::move(*there));
}

}  // namespace osb::docker
