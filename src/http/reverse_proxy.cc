#include "http/reverse_proxy.h"

#include "base/strings.h"
#include "http/head_parse.h"
#include "http/tunnel.h"
#include "http/websocket.h"
#include "io/pipe.h"
#include "io/running_time.h"

namespace osb::http {
namespace {

// For bodies of unknown length, which may be streams that stay open and idle; and for those that are known to
// be large.
constexpr size_t kBuffer = 32 * 1024;
constexpr size_t kLargeBuffer = 256 * 1024;

size_t buffer_size(std::optional<uint64_t> length) {
  return static_cast<size_t>(std::min<uint64_t>(length.value_or(kBuffer), kLargeBuffer));
}
// From this size on a body is worth a pipe, which costs two descriptors.
constexpr uint64_t kMovedBody = 1 << 20;
// A body up to this size is read before the upstream sees the request, so that both go out in one piece.
constexpr uint64_t kSmallBody = 16 * 1024;

// A client that asks for several protocols gets none of them.
std::string wanted_upgrade(const Request& request) {
  if (wants_websocket(request.head)) {
    bool plain = request.head.method == "GET" && request.body->length() == 0;
    return plain ? "websocket" : "";
  }
  std::string_view protocol = trim(request.head.headers.get("upgrade"));
  bool one = !protocol.empty() && protocol.find_first_of(", ") == protocol.npos;
  return one && wants_upgrade(request.head) && request.body->length() == 0 ? std::string(protocol) : "";
}

class Exchange {
 public:
  Exchange(Request& request, ResponseWriter& response, ClientConnection& upstream, Forward& what)
      : request_(request),
        response_(response),
        upstream_(upstream),
        what_(what),
        upgrade_(wanted_upgrade(request)) {
    if (what.stopped) upstream_.set_stopped_time(what.stopped);
    response_.when_closed([this] { client_has_gone(); });
  }
  ~Exchange() {
    response_.when_closed(nullptr);
    upstream_.set_stopped_time({});
  }
  Exchange(const Exchange&) = delete;

  Task<Result<void>> relay();
  RelayResult judge(Result<void> relayed);

 private:
  bool give_back();
  Task<Result<void>> send_small_body();
  Task<> pump_body();
  Task<> run_answer() { answer_ = co_await relay_answer(); }
  Task<Result<void>> relay_answer();
  Task<Result<void>> switch_protocols();
  void client_has_gone();
  Error explain(Error error) const;

  Request& request_;
  ResponseWriter& response_;
  ClientConnection& upstream_;
  Forward& what_;
  std::string upgrade_;  // the protocol that the client wants to change to, if it does
  bool client_gone_ = false;
  std::optional<Error> body_error_;  // of the client's body
  std::string small_body_;
  bool body_used_ = false;
  bool whole_request_sent_ = false;
  std::optional<ResponseHead> switching_;
  Result<void> answer_ = fail(Code::cancelled, "the relay was cancelled");
};

void Exchange::client_has_gone() {
  client_gone_ = true;
  boost::system::error_code ignored;
  upstream_.socket().cancel(ignored);
}

Error Exchange::explain(Error error) const {
  if (body_error_) return *body_error_;
  if (client_gone_) return {Code::unavailable, 0, "the client has gone"};
  if (upstream_.head_is_late()) return io::detail::deadline_error("the upstream", what_.head_timeout);
  return error;
}

RelayResult Exchange::judge(Result<void> relayed) {
  if (relayed) return {};
  RelayResult result{Relay::not_answered, explain(std::move(relayed.error()))};
  result.request_sent = upstream_.touched() || !give_back();
  result.client_slow = body_error_ && body_error_->code == Code::timeout;
  result.client_gone = client_gone_;
  if (response_.started()) {
    response_.abort();
    result.outcome = Relay::cut;
  }
  return result;
}

// A connection that broke before the first byte went out took nothing, but a small body has been read by
// then.
bool Exchange::give_back() {
  if (body_error_ || body_used_) return false;
  return small_body_.empty() || request_.body->put_back(std::move(small_body_));
}

Task<Result<void>> Exchange::relay() {
  RequestHead head = std::move(what_.head);
  strip_hop_by_hop(head.headers);
  head.headers.remove("expect");  // it is answered here, at the first read
  if (!upgrade_.empty()) {
    head.headers.add("Connection", "Upgrade");
    head.headers.add("Upgrade", upgrade_);
  }
  auto length = request_.body->length();
  CO_TRY(co_await upstream_.send_head(std::move(head), length));
  if (length && *length <= kSmallBody) {
    if (*length > 0) CO_TRY(co_await send_small_body());
    whole_request_sent_ = true;
    upstream_.limit_head(what_.head_timeout);
    answer_ = co_await relay_answer();
  } else {
    co_await io::race(run_answer(), pump_body());
  }
  if (answer_ && switching_) co_return co_await switch_protocols();
  co_return std::move(answer_);
}

Task<Result<void>> Exchange::send_small_body() {
  auto body = co_await read_all(*request_.body, kSmallBody);
  if (!body) {
    body_error_ = std::move(body.error());
    co_return std::unexpected(*body_error_);
  }
  small_body_ = std::move(*body);
  // A failed write is not the end: an upstream that died early may have answered before.
  auto written = co_await upstream_.write(small_body_);
  if (written) std::ignore = co_await upstream_.finish();
  co_return Result<void>{};
}

// Runs beside relay_answer(), and ends the exchange by returning when the client's body is no good.
Task<> Exchange::pump_body() {
  // What has a length is an upload. What has none may be a conversation.
  if (!request_.body->length()) request_.body->allow_slow();
  std::optional<io::Pipe> pipe;
  if (request_.body->length() >= kMovedBody) {
    if (auto made = io::Pipe::create()) pipe = std::move(*made);
  }
  size_t size = pipe ? kBuffer : std::max(buffer_size(request_.body->length()), kBuffer);
  auto buffer = std::make_unique_for_overwrite<char[]>(size);
  bool open =
      (co_await upstream_.write("")).has_value();  // the head, before the client has sent any of its body
  while (open) {
    bool moves = pipe && request_.body->direct() > 0;
    auto got = moves ? co_await request_.body->move_some(pipe->write.get(), io::Pipe::kCapacity)
                     : co_await request_.body->read_some({buffer.get(), size});
    body_used_ = true;
    if (!got) {
      body_error_ = std::move(got.error());
      co_return;
    }
    auto written = *got == 0 ? co_await upstream_.finish()
                   : moves   ? co_await upstream_.write_pipe(pipe->read.get(), *got)
                             : co_await upstream_.write({buffer.get(), *got});
    open = *got > 0 && written.has_value();
  }
  upstream_.limit_head(what_.head_timeout);
  while (true) co_await io::sleep_for(std::chrono::hours(1));  // until the answer is through
}

Task<Result<void>> Exchange::relay_answer() {
  ResponseHead head = CO_TRY(co_await upstream_.read_head());
  if (head.status == 101) {
    if (upgrade_.empty()) co_return fail(Code::corrupt, "the upstream switches protocols unasked");
    switching_ = std::move(head);
    co_return Result<void>{};
  }
  BodyReader& body = upstream_.body();
  auto length = body.length();
  if (request_.head.method == "HEAD") length = parse_number<uint64_t>(head.headers.get("content-length"));
  strip_hop_by_hop(head.headers);
  if (what_.edit_response) what_.edit_response(head);
  if (whole_request_sent_ && request_.head.method != "HEAD") {
    if (auto all = upstream_.take_body())
      co_return co_await response_.send(head.status, std::move(head.headers), std::move(*all));
  }
  CO_TRY(co_await response_.start(head.status, std::move(head.headers), length));
  // Whoever waits for the head must not wait for the first piece of the body, unless that is here already.
  if (body.length() != 0 && upstream_.buffered() == 0) CO_TRY(co_await response_.write(""));
  if (body.length() != 0) {
    size_t size = buffer_size(body.length());
    auto buffer = std::make_unique_for_overwrite<char[]>(size);
    while (size_t got = CO_TRY(co_await body.read_some({buffer.get(), size}))) {
      CO_TRY(co_await response_.write({buffer.get(), got}));
    }
  }
  co_return co_await response_.finish();
}

Task<Result<void>> Exchange::switch_protocols() {
  ResponseHead& head = *switching_;
  std::string protocol(head.headers.get("upgrade"));
  strip_hop_by_hop(head.headers);
  if (what_.edit_response) what_.edit_response(head);
  head.headers.set("Connection", "Upgrade");
  head.headers.set("Upgrade", std::move(protocol));
  CO_TRY(co_await response_.start(101, std::move(head.headers), 0));
  CO_TRY(co_await response_.finish());
  response_.when_closed(nullptr);  // from here on the tunnel sees for itself
  auto [client, received] = response_.take_over();
  co_await tunnel(*client, std::move(received), upstream_.socket(), upstream_.take_buffered(), what_.stopped);
  co_return Result<void>{};
}

}  // namespace

bool is_hop_by_hop(std::string_view name) {
  switch (name.size()) {
    case 2:
      return iequals(name, "TE");
    case 7:
      return iequals(name, "Trailer") || iequals(name, "Upgrade");
    case 10:
      return iequals(name, "Connection") || iequals(name, "Keep-Alive");
    case 16:
      return iequals(name, "Proxy-Connection");
    case 17:
      return iequals(name, "Transfer-Encoding");
    case 18:
      return iequals(name, "Proxy-Authenticate");
    case 19:
      return iequals(name, "Proxy-Authorization");
    default:
      return false;
  }
}

bool is_named_by_connection(const Headers& headers, std::string_view name) {
  for (const auto& [field, value] : headers) {
    if (field.size() == 10 && iequals(field, "Connection") && list_contains(value, name)) return true;
  }
  return false;
}

void strip_hop_by_hop(Headers& headers) {
  std::vector<std::string> named;
  for (const auto& [name, value] : headers) {
    if (name.size() != 10 || !iequals(name, "Connection")) continue;
    for (std::string_view word : split(value, ',')) named.emplace_back(trim(word));
  }
  for (const std::string& name : named) headers.remove(name);
  headers.remove_if(is_hop_by_hop);
}

Task<RelayResult> forward(Request& request, ResponseWriter& response, ClientConnection& upstream,
                          Forward what) {
  Exchange exchange(request, response, upstream, what);
  auto relayed = co_await exchange.relay();
  co_return exchange.judge(std::move(relayed));
}

}  // namespace osb::http
