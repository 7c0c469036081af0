#pragma once

// A client for measuring: one keep-alive connection, one request at a time, no allocation worth mentioning.
// It understands what the service sends (Content-Length and chunked bodies) and calls everything else an
// error.

#include <string>
#include <string_view>

namespace load {

double now_us();

// The answer so far. Fed with whatever arrives, in pieces of any size.
class Response {
 public:
  // False when the bytes are no HTTP answer that we understand; the connection is useless then.
  bool feed(std::string_view bytes);
  bool complete() const { return state_ == State::done; }
  int status() const { return status_; }
  const std::string& body() const { return body_; }
  bool keep_alive() const { return keep_alive_; }

 private:
  enum class State { head, sized, chunk_size, chunk_data, chunk_end, trailer, done };
  bool parse_head();
  bool step(bool& progress);
  std::string_view rest() const { return std::string_view(in_).substr(at_); }

  State state_ = State::head;
  std::string in_;
  size_t at_ = 0;
  size_t left_ = 0;
  int status_ = 0;
  bool keep_alive_ = true;
  std::string body_;
};

std::string make_request(std::string_view method, std::string_view path, int port,
                         std::string_view json = {});

// -1 when nothing listens there.
int connect_loopback(int port);

// The calls that every measurement is made of. `prefix` is what stands before a sandbox's id and `suffix`
// what stands between it and an execd path in an endpoint, as the server hands them out.
struct Service {
  int port = 0;
  std::string prefix = "/v1/sandboxes/";
  std::string suffix = "/proxy/44772";

  std::string create() const;
  std::string claim(std::string_view pool) const;
  std::string run(std::string_view id, std::string_view command) const;
  // A cell in a context, or in the default one of a language. JSON strings that need no escapes.
  std::string code(std::string_view id, std::string_view context, std::string_view language,
                   std::string_view code) const;
  std::string context(std::string_view id, std::string_view language) const;
  std::string ping(std::string_view id) const;
  std::string remove(std::string_view id) const;
  std::string pause(std::string_view id) const;
  std::string resume(std::string_view id) const;
  std::string health() const;
};

// The value of the first "id" member; empty when there is none.
std::string find_id(std::string_view body);
inline constexpr std::string_view kOutputEvent = "\"type\":\"stdout\"";
inline constexpr std::string_view kCompleteEvent = "\"type\":\"execution_complete\"";

}  // namespace load
