#pragma once

// WebSockets (RFC 6455), both sides: no extensions, no subprotocols. One task reads, any number may send:
// messages never mix. Pings are answered and close frames echoed while read() waits.
//
//   auto socket = co_await accept_websocket(request, response);
//   if (!socket) co_return;                       // the refusal has been answered
//   while (auto message = CO_TRY(co_await socket->read())) ...

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/client.h"
#include "http/server.h"
#include "http/websocket_frame.h"

namespace osb::http {

struct WebSocketLimits {
  size_t message_bytes = 16 << 20;                        // larger ones end the connection with 1009
  io::Duration silence = std::chrono::seconds(60);        // no byte for so long: Code::timeout from read()
  io::Duration write_timeout = std::chrono::seconds(10);  // one frame that is not taken
};

struct WebSocketMessage {
  bool text = false;
  std::string data;
};

class WebSocket {
 public:
  // `socket` is borrowed and must outlive this; `received` is what came behind the handshake.
  WebSocket(io::Socket& socket, std::string received, Role us, WebSocketLimits limits = {});
  ~WebSocket();
  WebSocket(WebSocket&&) noexcept;
  WebSocket& operator=(WebSocket&&) noexcept;

  // The next message; nothing when the other side has closed, see close_reason(). Code::corrupt when it broke
  // the protocol (it has been told so), Code::too_large, Code::timeout, Code::unavailable.
  Task<Result<std::optional<WebSocketMessage>>> read();
  // One frame; the second form sends `prefix` and `bytes` as one message without copying them together.
  Task<Result<void>> send_text(std::string_view text);
  Task<Result<void>> send_binary(std::string_view prefix, std::string_view bytes = {});
  Task<Result<void>> ping();
  // Announces the end. Sending is over; read() goes on until the other side closes too.
  Task<Result<void>> close(uint16_t code, std::string_view reason);
  const CloseReason& close_reason() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Whether a request asks for a WebSocket at all; what is wrong with it, accept_websocket() says.
bool wants_upgrade(const RequestHead& head);  // to whatever protocol
bool wants_websocket(const RequestHead& head);
// Completes the handshake. A bad one is answered (400, or 426 with the version that is spoken) and returned
// as an error.
Task<Result<WebSocket>> accept_websocket(Request& request, ResponseWriter& response,
                                         WebSocketLimits limits = {});
// The client's side, on an idle connection. `head` needs a target and Host. Code::permission_denied with the
// status in the message when the other side refuses.
Task<Result<WebSocket>> connect_websocket(ClientConnection& connection, RequestHead head,
                                          WebSocketLimits limits = {});

}  // namespace osb::http
