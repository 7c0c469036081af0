#include "runtime/native/egress_client.h"

#include "base/frame.h"
#include "json/decode.h"
#include "json/escape.h"
#include "runtime/network_policy_json.h"

namespace osb::runtime {
namespace {

using io::Task;

// Covers a restart of the egress process: connections wait for the next one.
constexpr auto kAttachLimit = std::chrono::seconds(20);
constexpr auto kMetricsLimit = std::chrono::seconds(5);
constexpr size_t kMostAnswer = 2 << 20;  // a policy of a mebibyte, as it is printed

Task<Result<std::string>> answer_of(io::Socket& socket) {
  FrameReader frames(kMostAnswer);
  while (true) {
    if (auto frame = CO_TRY(frames.next())) co_return std::move(*frame);
    char piece[4096];
    size_t n = CO_TRY(co_await io::read_some(socket, piece));
    if (n == 0) co_return fail(Code::unavailable, "the egress process has ended");
    frames.feed({piece, n});
  }
}

Task<Result<std::string>> call(std::string socket_path, std::string text) {
  auto socket = CO_TRY(co_await io::connect_unix(std::move(socket_path)));
  CO_TRY(co_await io::write_all(socket, encode_frame(text)));
  co_return co_await answer_of(socket);
}

std::optional<NetworkPolicy> policy_at(const json::Field& field) {
  if (field.raw() == nullptr) return std::nullopt;
  return read_policy(field);
}

// What `read` makes of an answer that is no failure.
template <class Read>
auto read_answer(std::string_view text, Read read) -> Result<std::invoke_result_t<Read, const json::Field&>> {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "answer", json::Reading::exact);
  auto error = field["error"].string();
  if (!error) {
    auto result = read(field);
    if (!issues.empty()) return fail(Code::corrupt, "an odd answer of the egress process");
    return result;
  }
  int64_t code = field["code"].integer().value_or(-1);
  bool known = code >= 0 && code <= static_cast<int64_t>(Code::internal);
  return fail(known ? static_cast<Code>(code) : Code::internal, std::move(*error));
}

std::optional<NetworkPolicy> policy_in(const json::Field& answer) { return policy_at(answer["policy"]); }

}  // namespace

Task<Result<void>> attach_egress(std::string socket_path, std::string handle, std::string id,
                                 NetworkPolicy policy) {
  std::string text = "{\"attach\":\"" + handle + "\",\"id\":";
  json::append_string(text, id);
  text += ",\"policy\":" + to_json(policy) + "}";
  auto answer = CO_TRY(co_await io::with_deadline(kAttachLimit, "the egress process",
                                                  call(std::move(socket_path), std::move(text))));
  CO_TRY(read_answer(answer, policy_in));
  co_return Result<void>();
}

Task<Result<std::optional<NetworkPolicy>>> egress_policy(std::string socket_path, std::string handle) {
  std::string text = "{\"policyOf\":\"" + handle + "\"}";
  auto answer = CO_TRY(co_await io::with_deadline(kAttachLimit, "the egress process",
                                                  call(std::move(socket_path), std::move(text))));
  co_return read_answer(answer, policy_in);
}

Task<Result<std::string>> egress_metrics(std::string socket_path) {
  auto answer = CO_TRY(co_await io::with_deadline(kMetricsLimit, "the egress process",
                                                  call(std::move(socket_path), R"({"metrics":true})")));
  co_return read_answer(answer, [](const json::Field& field) { return field["metrics"].required_string(); });
}

Task<Result<io::Socket>> connect_egress(std::string socket_path, std::string handle) {
  auto socket = CO_TRY(co_await io::connect_unix(std::move(socket_path)));
  CO_TRY(co_await io::write_all(socket, encode_frame("{\"api\":\"" + handle + "\"}")));
  co_return socket;
}

}  // namespace osb::runtime
