#include "http/websocket.h"

#include <sys/random.h>

#include <array>
#include <cstdlib>

#include "base/strings.h"
#include "base/utf8.h"
#include "http/head_parse.h"
#include "http/wire.h"

namespace osb::http {
namespace {

std::array<uint8_t, 4> new_mask() {
  std::array<uint8_t, 4> mask;
  if (::getrandom(mask.data(), mask.size(), 0) != static_cast<ssize_t>(mask.size())) std::abort();
  return mask;
}

// What to tell the other side about an error of its own.
uint16_t close_code_for(const Error& error) {
  if (error.code == Code::too_large) return 1009;
  return error.message.ends_with("UTF-8") ? 1007 : 1002;
}

}  // namespace

struct WebSocket::Impl {
  Impl(io::Socket& s, std::string first, Role r, WebSocketLimits l)
      : socket(s), us(r), limits(l), write_free(s.get_executor()) {
    std::span<char> room = in.prepare(std::max(first.size(), Wire::kHeadBuffer));
    std::copy(first.begin(), first.end(), room.begin());
    in.commit(first.size());
  }

  Task<Result<void>> fill();
  Task<Result<FrameHead>> read_frame_head();
  Result<void> begin_data(const FrameHead& head);
  Task<Result<void>> read_payload(const FrameHead& head, std::string& out);
  Task<Result<std::optional<WebSocketMessage>>> read_message();
  Task<Result<bool>> handle_control(const FrameHead& head);  // false: the other side has closed
  Task<Result<void>> write_frame(Opcode opcode, std::string_view first, std::string_view second);
  Task<Result<void>> write_now(Opcode opcode, std::string_view first, std::string_view second);

  io::Socket& socket;
  Role us;
  WebSocketLimits limits;
  InputBuffer in;
  io::Event write_free;
  bool writing = false;
  bool write_broken = false;
  bool close_sent = false;
  bool close_received = false;
  CloseReason reason{1006, {}};
  // The message under way; kept here so that a read which was cancelled can be taken up again.
  std::optional<WebSocketMessage> partial;
  std::optional<FrameHead> frame;
  uint64_t frame_read = 0;
  std::string control;
};

WebSocket::WebSocket(io::Socket& socket, std::string received, Role us, WebSocketLimits limits)
    : impl_(std::make_unique<Impl>(socket, std::move(received), us, limits)) {}
WebSocket::~WebSocket() = default;
WebSocket::WebSocket(WebSocket&&) noexcept = default;
WebSocket& WebSocket::operator=(WebSocket&&) noexcept = default;
const CloseReason& WebSocket::close_reason() const { return impl_->reason; }

Task<Result<void>> WebSocket::Impl::fill() {
  auto got = co_await io::with_deadline(limits.silence, "websocket",
                                        io::read_some(socket, in.prepare(Wire::kBodyBuffer)));
  if (!got) co_return std::unexpected(std::move(got.error()));
  if (*got == 0) co_return fail(Code::unavailable, "websocket: the connection ended without a close frame");
  in.commit(*got);
  co_return Result<void>{};
}

Task<Result<FrameHead>> WebSocket::Impl::read_frame_head() {
  while (true) {
    auto head = CO_TRY(parse_frame_head(in.view(), us));
    if (head) {
      in.consume(head->size);
      co_return *head;
    }
    CO_TRY(co_await fill());
  }
}

Task<Result<void>> WebSocket::Impl::read_payload(const FrameHead& head, std::string& out) {
  while (frame_read < head.length) {
    if (in.empty()) CO_TRY(co_await fill());
    size_t n = static_cast<size_t>(std::min<uint64_t>(in.size(), head.length - frame_read));
    size_t from = out.size();
    out.append(in.view().substr(0, n));
    if (head.mask) apply_mask({out.data() + from, n}, *head.mask, frame_read & 3);
    in.consume(n);
    frame_read += n;
  }
  co_return Result<void>{};
}

Task<Result<bool>> WebSocket::Impl::handle_control(const FrameHead& head) {
  CO_TRY(co_await read_payload(head, control));
  std::string payload = std::exchange(control, {});
  frame.reset();
  if (head.opcode == Opcode::ping && !close_sent) CO_TRY(co_await write_frame(Opcode::pong, payload, {}));
  if (head.opcode != Opcode::close) co_return true;
  reason = CO_TRY(parse_close(payload));
  close_received = true;
  // The echo is a courtesy: the other side may be gone by now.
  if (!close_sent)
    std::ignore = co_await write_frame(Opcode::close, std::string_view(payload).substr(0, 2), {});
  co_return false;
}

// Once per frame, before its payload.
Result<void> WebSocket::Impl::begin_data(const FrameHead& head) {
  bool continues = head.opcode == Opcode::continuation;
  if (continues != partial.has_value()) return fail(Code::corrupt, "websocket: messages are mixed");
  if (!partial) partial = WebSocketMessage{head.opcode == Opcode::text, {}};
  if (head.length > limits.message_bytes - partial->data.size()) {
    return fail(Code::too_large, "websocket: a message is too long");
  }
  return {};
}

Task<Result<std::optional<WebSocketMessage>>> WebSocket::Impl::read_message() {
  while (true) {
    bool control_frame = frame && frame->opcode >= Opcode::close;
    if (!frame) {
      frame = CO_TRY(co_await read_frame_head());
      frame_read = 0;
      control_frame = frame->opcode >= Opcode::close;
      if (!control_frame) CO_TRY(begin_data(*frame));
    }
    if (control_frame) {
      if (!CO_TRY(co_await handle_control(FrameHead(*frame)))) co_return std::nullopt;
      continue;
    }
    CO_TRY(co_await read_payload(*frame, partial->data));
    bool final = frame->final;
    frame.reset();
    if (!final) continue;
    auto message = std::exchange(partial, std::nullopt);
    if (message->text && !is_utf8(message->data))
      co_return fail(Code::corrupt, "websocket: a text that is not UTF-8");
    co_return message;
  }
}

Task<Result<std::optional<WebSocketMessage>>> WebSocket::read() {
  Impl& w = *impl_;
  if (w.close_received) co_return std::nullopt;
  auto message = co_await w.read_message();
  if (message) co_return message;
  Error error = std::move(message.error());
  if ((error.code == Code::corrupt || error.code == Code::too_large) && !w.close_sent) {
    std::ignore = co_await close(close_code_for(error), {});
  }
  co_return std::unexpected(std::move(error));
}

// Whole frames, one after the other.
Task<Result<void>> WebSocket::Impl::write_frame(Opcode opcode, std::string_view first,
                                                std::string_view second) {
  while (writing) co_await write_free.wait();
  if (close_sent || write_broken) co_return fail(Code::unavailable, "websocket: closed");
  struct Turn {
    explicit Turn(Impl* i) : impl(i) { impl->writing = true; }
    ~Turn() {
      impl->writing = false;
      impl->write_free.set();
      impl->write_free.reset();
    }
    Impl* impl;
  } turn(this);
  if (opcode == Opcode::close) close_sent = true;
  auto written = co_await write_now(opcode, first, second);
  if (!written) write_broken = true;
  co_return written;
}

Task<Result<void>> WebSocket::Impl::write_now(Opcode opcode, std::string_view first,
                                              std::string_view second) {
  FrameHead head{.final = true, .opcode = opcode, .mask = {}, .length = first.size() + second.size()};
  std::string bytes, masked;
  if (us == Role::client) {
    head.mask = new_mask();
    masked.append(first).append(second);
    apply_mask(masked, *head.mask);
    first = masked;
    second = {};
  }
  append_frame_head(bytes, head);
  std::array<std::string_view, 3> pieces{bytes, first, second};
  size_t sent = CO_TRY(io::try_write(socket, pieces));
  if (sent == bytes.size() + first.size() + second.size()) co_return Result<void>{};
  co_return co_await io::with_deadline(limits.write_timeout, "websocket",
                                       io::write_all(socket, pieces, sent));
}

Task<Result<void>> WebSocket::send_text(std::string_view text) {
  return impl_->write_frame(Opcode::text, text, {});
}
Task<Result<void>> WebSocket::send_binary(std::string_view prefix, std::string_view bytes) {
  return impl_->write_frame(Opcode::binary, prefix, bytes);
}
Task<Result<void>> WebSocket::ping() { return impl_->write_frame(Opcode::ping, {}, {}); }

Task<Result<void>> WebSocket::close(uint16_t code, std::string_view reason) {
  std::string payload;
  payload.push_back(static_cast<char>(code >> 8));
  payload.push_back(static_cast<char>(code));
  payload.append(reason.substr(0, 123));
  co_return co_await impl_->write_frame(Opcode::close, payload, {});
}

bool wants_upgrade(const RequestHead& head) {
  return head.http_1_1 && list_contains(head.headers.get("connection"), "upgrade");
}

bool wants_websocket(const RequestHead& head) {
  return wants_upgrade(head) && list_contains(head.headers.get("upgrade"), "websocket");
}

Task<Result<WebSocket>> accept_websocket(Request& request, ResponseWriter& response, WebSocketLimits limits) {
  const Headers& headers = request.head.headers;
  std::string_view wrong;
  int status = 400;
  if (!wants_websocket(request.head)) {
    wrong = "this is a WebSocket endpoint: Connection: Upgrade and Upgrade: websocket are missing";
    status = 426;
  } else if (request.head.method != "GET" || request.body->length() != 0) {
    wrong = "a WebSocket handshake is a GET without a body";
  } else if (headers.get("sec-websocket-version") != "13") {
    wrong = "only version 13 of the WebSocket protocol is spoken";
    status = 426;
  } else if (!is_websocket_key(headers.get("sec-websocket-key"))) {
    wrong = "Sec-WebSocket-Key must be 16 bytes in base64";
  }
  if (!wrong.empty()) {
    Headers fields{{"Content-Type", "application/json"}, {"Sec-WebSocket-Version", "13"}};
    if (status == 426) {
      fields.add("Upgrade", "websocket");
    }
    std::string body = R"({"code":"HTTP::BAD_REQUEST","message":")" + std::string(wrong) + R"("})";
    CO_TRY(co_await response.send(status, std::move(fields), std::move(body)));
    co_return fail(Code::invalid_argument, std::string(wrong));
  }
  Headers fields{{"Connection", "Upgrade"},
                 {"Upgrade", "websocket"},
                 {"Sec-WebSocket-Accept", websocket_accept(headers.get("sec-websocket-key"))}};
  CO_TRY(co_await response.start(101, std::move(fields), 0));
  CO_TRY(co_await response.finish());
  auto [socket, received] = response.take_over();
  co_return WebSocket(*socket, std::move(received), Role::server, limits);
}

Task<Result<WebSocket>> connect_websocket(ClientConnection& connection, RequestHead head,
                                          WebSocketLimits limits) {
  std::string key = new_websocket_key();
  head.method = "GET";
  head.headers.set("Connection", "Upgrade");
  head.headers.set("Upgrade", "websocket");
  head.headers.set("Sec-WebSocket-Version", "13");
  head.headers.set("Sec-WebSocket-Key", key);
  CO_TRY(co_await connection.send_head(std::move(head), 0));
  ResponseHead answer =
      CO_TRY(co_await io::with_deadline(limits.silence, "websocket handshake", connection.read_head()));
  if (answer.status != 101) {
    co_return fail(Code::permission_denied,
                   "websocket handshake: refused with status " + std::to_string(answer.status));
  }
  bool good = iequals(answer.headers.get("upgrade"), "websocket") &&
              list_contains(answer.headers.get("connection"), "upgrade") &&
              answer.headers.get("sec-websocket-accept") == websocket_accept(key) &&
              !answer.headers.contains("sec-websocket-extensions") &&
              !answer.headers.contains("sec-websocket-protocol");
  if (!good) co_return fail(Code::corrupt, "websocket handshake: the answer does not fit the request");
  co_return WebSocket(connection.socket(), connection.take_buffered(), Role::client, limits);
}

}  // namespace osb::http
