#include "http/client.h"

#include <poll.h>

#include <array>

#include "http/answer_timer.h"
#include "http/head_check.h"
#include "http/head_format.h"
#include "http/head_parse.h"
#include "http/stream_body.h"
#include "http/wire.h"

namespace osb::http {

struct ClientConnection::Impl {
  explicit Impl(io::Socket socket)
      : wire(std::move(socket), nullptr), body(wire, BodyPace()), timer(wire.socket()) {}

  Task<Result<void>> put(io::Pieces pieces, bool last);
  BodyDecoder decoder_for(const ResponseHead& head, const Framing& framing) const;

  Wire wire;
  StreamBody body;
  std::string head;  // composed; not sent yet when head_pending
  BodyFraming framing;
  uint64_t left = 0;  // of the declared length
  bool head_pending = false;
  bool sending = false;   // between send_head and the end of the request body
  bool awaiting = false;  // the answer's head has not come
  bool head_request = false;
  bool touched = false;
  bool keep = true;
  ChunkPrefix prefix;
  AnswerTimer timer;
  io::StoppedTime stopped;
};

ClientConnection::ClientConnection(io::Socket socket) : impl_(std::make_unique<Impl>(std::move(socket))) {}
ClientConnection::~ClientConnection() = default;
ClientConnection::ClientConnection(ClientConnection&&) noexcept = default;
ClientConnection& ClientConnection::operator=(ClientConnection&&) noexcept = default;

io::Socket& ClientConnection::socket() { return impl_->wire.socket(); }
BodyReader& ClientConnection::body() { return impl_->body; }
void ClientConnection::set_stopped_time(io::StoppedTime stopped) {
  impl_->timer.disarm();  // it may ask whoever could tell before, and who goes now
  impl_->stopped = stopped;
  impl_->wire.set_stopped_time(std::move(stopped));
}
void ClientConnection::limit_head(io::Duration limit) {
  if (impl_->awaiting) impl_->timer.arm(limit, impl_->stopped);
}
bool ClientConnection::head_is_late() const { return impl_->timer.expired(); }
std::optional<std::string> ClientConnection::take_body() { return impl_->body.take_all(); }
bool ClientConnection::touched() const { return impl_->touched; }
size_t ClientConnection::buffered() const { return impl_->wire.in().size(); }

std::string ClientConnection::take_buffered() {
  std::string received(impl_->wire.in().view());
  impl_->wire.in().consume(received.size());
  return received;
}

bool ClientConnection::reusable() const {
  // Bytes behind an answer were not asked for: whoever sent them may mean them for the next request.
  return impl_->keep && !impl_->sending && !impl_->awaiting && impl_->body.done() &&
         !impl_->wire.read_broken() && !impl_->wire.write_broken() && impl_->wire.in().empty();
}

bool ClientConnection::alive() {
  if (!reusable()) return false;
  pollfd p{impl_->wire.socket().native_handle(), POLLIN | POLLRDHUP, 0};
  return ::poll(&p, 1, 0) == 0;
}

// `last`: nothing of the request follows. That is noted as soon as the bytes are out, not when the caller
// goes on: the answer may be complete before that.
Task<Result<void>> ClientConnection::Impl::put(io::Pieces pieces, bool last) {
  size_t size = 0;
  for (std::string_view piece : pieces) size += piece.size();
  size_t sent = 0;
  if (size > 0) {
    sent = CO_TRY(wire.write_now(pieces));
    touched = true;
  }
  if (sent == size && last) sending = false;
  if (sent == size && !wire.must_yield()) co_return Result<void>{};
  CO_TRY(co_await wire.write_rest(pieces, sent));
  if (last) sending = false;
  co_return Result<void>{};
}

Task<Result<void>> ClientConnection::send_head(RequestHead head, std::optional<uint64_t> length) {
  Impl& c = *impl_;
  if (c.sending || c.awaiting || !c.body.done())
    co_return fail(Code::wrong_state, "the last exchange is not over");
  using Kind = BodyFraming::Kind;
  bool usually_has_body = head.method == "POST" || head.method == "PUT" || head.method == "PATCH";
  if (!length) {
    c.framing = {Kind::chunked};
  } else if (*length > 0 || usually_has_body) {
    c.framing = {Kind::length, *length};
  } else {
    c.framing = {};
  }
  CO_TRY(format_request_head(head, c.framing, c.head));
  if (list_contains(head.headers.get("connection"), "close")) c.keep = false;
  c.head_request = head.method == "HEAD";
  c.left = length.value_or(0);
  c.touched = false;
  c.head_pending = true;
  c.awaiting = true;
  c.sending = !length || *length > 0;
  c.timer.forget_expiry();
  if (c.sending) co_return Result<void>{};
  // As write("") does, without further coroutines on the way of most requests.
  c.head_pending = false;
  std::array<std::string_view, 1> pieces{c.head};
  size_t sent = CO_TRY(c.wire.write_now(pieces));
  c.touched = true;
  if (sent == c.head.size() && !c.wire.must_yield()) co_return Result<void>{};
  co_return co_await c.wire.write_rest(pieces, sent);
}

Task<Result<void>> ClientConnection::write(std::string_view bytes) {
  Impl& c = *impl_;
  if (!bytes.empty() && !c.sending) co_return fail(Code::wrong_state, "no request body is under way");
  bool chunked = c.framing.kind == BodyFraming::Kind::chunked && !bytes.empty();
  if (!chunked) {
    if (bytes.size() > c.left)
      co_return fail(Code::invalid_argument, "the request body is longer than was declared");
    c.left -= bytes.size();
  }
  std::array<std::string_view, 4> pieces;
  if (c.head_pending) pieces[0] = c.head;
  c.head_pending = false;
  pieces[2] = bytes;
  if (chunked) {
    pieces[1] = chunk_prefix(bytes.size(), c.prefix);
    pieces[3] = "\r\n";
  }
  co_return co_await c.put(pieces, c.framing.kind != BodyFraming::Kind::chunked && c.left == 0);
}

Task<Result<void>> ClientConnection::write_pipe(int pipe, size_t size) {
  Impl& c = *impl_;
  if (!c.sending || c.framing.kind != BodyFraming::Kind::length)
    co_return fail(Code::wrong_state, "no request body with a length is under way");
  if (size > c.left) co_return fail(Code::invalid_argument, "the request body is longer than was declared");
  if (c.head_pending) CO_TRY(co_await write(""));
  size_t sent = CO_TRY(c.wire.splice_now(pipe, size));
  c.touched = true;
  c.left -= size;
  // As put() does: all is out before anybody else has a turn.
  if (sent == size && c.left == 0) c.sending = false;
  if (sent == size && !c.wire.must_yield()) co_return Result<void>{};
  CO_TRY(co_await c.wire.splice_rest(pipe, size - sent));
  if (c.left == 0) c.sending = false;
  co_return Result<void>{};
}

Task<Result<void>> ClientConnection::finish() {
  Impl& c = *impl_;
  if (!c.sending) co_return Result<void>{};
  bool chunked = c.framing.kind == BodyFraming::Kind::chunked;
  if (!chunked && c.left > 0)
    co_return fail(Code::invalid_argument, "the request body is shorter than was declared");
  std::array<std::string_view, 2> pieces;
  if (c.head_pending) pieces[0] = c.head;
  c.head_pending = false;
  if (chunked) pieces[1] = "0\r\n\r\n";
  co_return co_await c.put(pieces, true);
}

BodyDecoder ClientConnection::Impl::decoder_for(const ResponseHead& answer, const Framing& f) const {
  if (head_request || answer.status < 200 || answer.status == 204 || answer.status == 304)
    return BodyDecoder();
  if (f.chunked) return BodyDecoder::chunked();
  if (f.length) return BodyDecoder::with_length(*f.length);
  return BodyDecoder::until_close();
}

Task<Result<ResponseHead>> ClientConnection::read_head() {
  Impl& c = *impl_;
  if (!c.awaiting) co_return fail(Code::wrong_state, "no answer is expected");
  if (c.head_pending) CO_TRY(co_await write(""));
  InputBuffer& in = c.wire.in();
  size_t scanned = 0;
  int skipped = 0;
  while (true) {
    HeadScan scan = find_head_end(in.view(), scanned);
    if (scan.state == HeadScan::State::malformed) {
      c.wire.break_off();
      co_return fail(Code::corrupt, "the answer is not HTTP/1.1: " + std::string(scan.reason));
    }
    if (scan.state == HeadScan::State::incomplete) {
      if (in.size() >= kMaxHeadBytes) {
        c.wire.break_off();
        co_return fail(Code::corrupt, "the answer's head is larger than 64 KiB");
      }
      size_t got = CO_TRY(co_await c.wire.fill(Wire::kBodyBuffer));
      if (got > 0) continue;
      c.wire.break_off();
      co_return fail(Code::unavailable, in.empty() ? "the connection was closed without an answer"
                                                   : "the connection was closed within the answer's head");
    }
    ResponseHead answer;
    Framing framing;
    if (auto rejected = parse_response_head(in.view().substr(0, scan.size), answer, framing)) {
      c.wire.break_off();
      co_return fail(Code::corrupt, "the answer is not HTTP/1.1: " + std::string(rejected->reason));
    }
    in.consume(scan.size);
    scanned = 0;
    if (answer.status < 200 && answer.status != 101) {
      if (++skipped <= 16) continue;
      c.wire.break_off();
      co_return fail(Code::corrupt, "too many interim answers");
    }
    if (framing.close || answer.status == 101) c.keep = false;
    BodyDecoder decoder = c.decoder_for(answer, framing);
    if (!decoder.declared() && !framing.chunked) c.keep = false;
    c.body.begin(std::move(decoder), false);
    c.awaiting = false;
    c.timer.disarm();
    co_return answer;
  }
}

Task<Result<Response>> fetch(ClientConnection& connection, RequestHead head, std::string body,
                             size_t body_limit) {
  CO_TRY(co_await connection.send_head(std::move(head), body.size()));
  // An upstream that answers early may stop reading: its answer counts, the failed write does not.
  auto written = co_await connection.write(body);
  if (written) written = co_await connection.finish();
  auto answer = co_await connection.read_head();
  if (!answer) {
    if (!written) co_return std::unexpected(std::move(written.error()));
    co_return std::unexpected(std::move(answer.error()));
  }
  std::string content = CO_TRY(co_await read_all(connection.body(), body_limit));
  co_return Response{std::move(*answer), std::move(content)};
}

}  // namespace osb::http
