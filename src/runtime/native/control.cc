#include "runtime/native/control.h"

#include <array>
#include <boost/json.hpp>

#include "base/clock.h"
#include "json/decode.h"

namespace osb::runtime {
namespace {

constexpr size_t kMaxFrame = 8 << 20;  // a refused program name comes back whole, escaped
constexpr auto kWriteDeadline = std::chrono::seconds(10);

}  // namespace

Result<ControlState> parse_control_state(std::string_view text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "state");
  ControlState state;
  std::string word = field["state"].required_string();
  state.protocol = static_cast<int>(field["protocol"].integer().value_or(1));
  state.exit_code = static_cast<int>(field["exit_code"].integer().value_or(0));
  state.signal = static_cast<int>(field["signal"].integer().value_or(0));
  state.out_of_memory = field["out_of_memory"].boolean();
  state.stopped = field["stopped"].boolean().value_or(false);
  state.sys_errno = static_cast<int>(field["errno"].integer().value_or(0));
  state.path = field["path"].string().value_or("");
  state.message = field["message"].string().value_or("");
  state.output = field["output"].string().value_or("");
  state.output_truncated = field["truncated"].boolean().value_or(false);
  if (word == "waiting")
    state.kind = ControlState::Kind::waiting;
  else if (word == "running")
    state.kind = ControlState::Kind::running;
  else if (word == "failed")
    state.kind = ControlState::Kind::failed;
  else if (word == "ended")
    state.kind = ControlState::Kind::ended;
  else
    return fail(Code::corrupt, "execd: unknown state");
  if (!issues.empty()) return fail(Code::corrupt, "execd: " + issues.list().front().message);
  return state;
}

std::string encode_entry(const EntryProcess& entry) {
  boost::json::array environment;
  for (const auto& [key, value] : entry.environment) environment.push_back(boost::json::array{key, value});
  boost::json::array arguments;
  for (const std::string& word : entry.arguments) arguments.emplace_back(word);
  boost::json::object init{{"argv", std::move(arguments)},
                           {"env", std::move(environment)},
                           {"cwd", entry.directory},
                           {"uid", entry.uid},
                           {"gid", entry.gid}};
  if (entry.inherits) init = {{"argv", init["argv"]}, {"env", init["env"]}, {"inherit", true}};
  if (entry.cpu_millis) init["cpu_millis"] = *entry.cpu_millis;
  if (entry.memory_bytes) init["memory_bytes"] = *entry.memory_bytes;
  return json::print(boost::json::object{{"init", std::move(init)}});
}

Task<Result<ControlConnection>> ControlConnection::open(std::string socket_path) {
  auto socket = CO_TRY(co_await io::connect_unix(std::move(socket_path)));
  co_return ControlConnection(std::move(socket));
}

ControlConnection::ControlConnection(io::Socket socket) : socket_(std::move(socket)), frames_(kMaxFrame) {}

Task<Result<ControlState>> ControlConnection::next() {
  while (true) {
    auto frame = frames_.next();
    if (!frame) co_return fail(Code::corrupt, "execd: " + frame.error().message);
    if (*frame) co_return parse_control_state(**frame);
    char piece[4096];
    size_t n = CO_TRY(co_await io::read_some(socket_, piece));
    if (n == 0) co_return fail(Code::unavailable, "execd closed its control connection");
    frames_.feed({piece, n});
  }
}

bool ControlConnection::has_more() {
  boost::system::error_code error;
  return frames_.has_bytes() || (socket_.available(error) > 0 && !error);
}

Task<Result<void>> ControlConnection::send(std::string json) {
  std::string frame = encode_frame(json);
  std::array<std::string_view, 1> pieces{frame};
  // It nearly always fits, and a deadline costs more than the call.
  size_t sent = CO_TRY(io::try_write(socket_, pieces));
  if (sent == frame.size()) co_return Result<void>();
  co_return co_await io::with_deadline(kWriteDeadline, "execd", io::write_all(socket_, pieces, sent));
}

Task<Result<void>> ControlConnection::start(EntryProcess entry) {
  co_return co_await send(encode_entry(entry));
}
Task<Result<void>> ControlConnection::hold() { co_return co_await send(R"({"hold":true})"); }
Task<Result<void>> ControlConnection::acknowledge() { co_return co_await send(R"({"ack":true})"); }

}  // namespace osb::runtime
