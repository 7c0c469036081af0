#include "runtime/runtime.h"

#include "http/client.h"
#include "json/decode.h"

namespace osb::runtime {
namespace {

constexpr size_t kMostOutput = 1 << 20;

}  // namespace

Task<Created<Warm>> Runtime::warm(PreparedPtr, std::string) {
  co_return std::unexpected(CreateFailure{CreateFailure::Kind::unsupported,
                                          {Code::unsupported, 0, "pools: " + capabilities().pools.why}});
}
Task<Created<void>> Runtime::claim(std::string, Claim, std::optional<NetworkPolicy>) {
  co_return std::unexpected(CreateFailure{CreateFailure::Kind::unsupported,
                                          {Code::unsupported, 0, "pools: " + capabilities().pools.why}});
}
Task<Adoption> Runtime::adopt_warm(std::string, Warm) {
  co_return Adoption{.kind = Adoption::Kind::ended, .end = {End::Kind::lost, 0, "nothing waits here"}};
}
Task<Result<void>> Runtime::capture(std::string, std::string) {
  co_return fail(Code::unsupported, capabilities().snapshots.why);
}
Task<Result<KeptSnapshot>> Runtime::keep(std::string) {
  co_return fail(Code::unsupported, capabilities().snapshots.why);
}
Task<Result<std::vector<sandbox::FileChange>>> Runtime::changes(std::string) {
  co_return fail(Code::unsupported, capabilities().snapshots.why);
}
Task<Result<std::vector<NamedVolume>>> Runtime::list_volumes(std::string) {
  co_return std::vector<NamedVolume>();
}
Task<Result<void>> Runtime::remove_volume(std::string, std::string) {
  co_return fail(Code::not_found, "this runtime has no volumes");
}
Task<Result<void>> Runtime::drop(std::string) { co_return Result<void>(); }
Task<Result<std::vector<std::string>>> Runtime::list_snapshots() { co_return std::vector<std::string>(); }

std::string Runtime::detour(const std::string&, uint16_t) const { return ""; }

std::optional<std::string> Runtime::endpoint(const std::string&, uint16_t) const { return std::nullopt; }

Task<Created<std::string>> create(Runtime& runtime, SandboxSpec spec, Claim claim) {
  auto prepared = co_await runtime.prepare(std::move(spec));
  if (!prepared) co_return std::unexpected(std::move(prepared.error()));
  co_return co_await runtime.start(std::move(*prepared), std::move(claim));
}

Task<Result<Output>> execd_logs(Runtime& runtime, std::string handle, io::TaskGroup& pumps) {
  auto executor = co_await io::asio::this_coro::executor;
  auto stream = CO_TRY(co_await runtime.connect(std::move(handle), kExecdPort));
  http::ClientConnection connection(CO_TRY(io::to_socket(std::move(stream), executor, pumps)));
  http::RequestHead head{"GET", "/entry/output", true, {{"Host", "execd"}}};
  auto answer = CO_TRY(co_await http::fetch(connection, std::move(head), "", kMostOutput));
  auto value = CO_TRY(json::parse(answer.body));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "answer");
  Output output{field["output"].required_string(), field["truncated"].boolean().value_or(false)};
  if (answer.head.status != 200 || !issues.empty()) co_return fail(Code::corrupt, "an odd answer of execd");
  co_return output;
}

std::optional<ImageRequest::Pull> pull_from(std::string_view word) {
  if (word == "always") return ImageRequest::Pull::always;
  if (word == "if-not-present") return ImageRequest::Pull::if_missing;
  if (word == "never") return ImageRequest::Pull::never;
  return std::nullopt;
}

Task<Result<std::optional<NetworkPolicy>>> Runtime::network_of(std::string) {
  co_return std::optional<NetworkPolicy>();
}

std::string Runtime::preparing(const std::string&) const { return {}; }

Task<Result<bool>> Runtime::is_paused(std::string) {
  co_return fail(Code::unsupported, "nobody but this server pauses sandboxes of this runtime");
}

}  // namespace osb::runtime
