#pragma once

// The HTTP/1.1 server: one coroutine per connection, heads read in one strict pass (head_parse.h), bodies
// streamed.
//
// A handler gets a Request whose body it may read piece by piece, and a ResponseWriter which it uses either
// once (send) or as a stream (start, write..., finish). A handler that returns without answering answers 500.
// An unread request body is drained for a moment and up to a bound, else the connection closes after the
// answer; after a refusal it closes unless the body is here already. "Expect: 100-continue" is answered at
// the first read.

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "http/message.h"
#include "io/socket.h"

namespace osb::http {

using io::Task;

// Somebody else's bytes, in pieces. read_some gives 0 at the end.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  virtual Task<Result<size_t>> read_some(std::span<char> into) = 0;
  virtual std::optional<uint64_t> length() const = 0;  // when it was declared; 0 when there is no body
  // The body is a stream whose pace is its sender's business: only silence ends it, not slowness.
  virtual void allow_slow() {}
  // As read_some() into a pipe, which must not block: bytes are moved, not copied. Only up to direct(), which
  // is 0 where what comes next has to be looked at.
  virtual uint64_t direct() const { return 0; }
  virtual Task<Result<size_t>> move_some(int pipe, size_t limit);
  // Gives back what was read and not used, for whoever reads next; false when this reader cannot.
  virtual bool put_back(std::string) { return false; }
};
Task<Result<std::string>> read_all(BodyReader& body, size_t limit);  // Code::too_large beyond limit

// Whoever sent a request.
class Sender {
 public:
  virtual ~Sender() = default;
  // Whether nobody is left to read the answer, for handlers that are about to do something which only makes
  // sense if somebody does. One system call unless the client has closed something (client_presence.h). Only
  // after the body was read and before the answer starts.
  virtual Task<bool> gone() = 0;
};

struct Request {
  RequestHead head;
  BodyReader* body = nullptr;
  Sender* sender = nullptr;                   // null where there is no connection
  std::string peer;                           // the client's address without its port, "" on unix sockets
  std::map<std::string, std::string> params;  // {name} of the route, percent-decoded
  std::string rest;                           // what {rest...} matched, raw, with its leading slash or empty
  std::string request_id;                     // set by whoever assigns ids
};

class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;
  // Added to whatever answer follows, the automatic ones too. A field that the answer itself sets wins.
  virtual void always(std::string name, std::string value) = 0;
  // A complete answer. Content-Length is set; a 204 or 304 has neither body nor length.
  virtual Task<Result<void>> send(int status, Headers headers, std::string body) = 0;
  // A streamed answer: with a length, or chunked. The head goes out with the first bytes; write("") sends it
  // alone.
  virtual Task<Result<void>> start(int status, Headers headers, std::optional<uint64_t> length) = 0;
  virtual Task<Result<void>> write(std::string_view bytes) = 0;  // one chunk, sent at once
  // The next `size` bytes of an answer with a declared length, from a pipe that holds them: they are moved,
  // not copied. With an error some may be left in the pipe.
  virtual Task<Result<void>> write_pipe(int pipe, size_t size) = 0;
  virtual Task<Result<void>> finish() = 0;
  virtual bool started() const = 0;
  // Gives up on the connection: the client sees a cut stream, never a complete-looking one.
  virtual void abort() = 0;
  // For upgrades: everything after this belongs to the caller. Returns the socket and the bytes already read.
  // The socket stays valid until the handler returns. A 101 head goes out before, with start(101, ...) and
  // finish().
  virtual std::pair<io::Socket*, std::string> take_over() = 0;
  // Returns when the client has gone, for handlers that have nothing to write for long. Only after the
  // request body was read to its end; cancel it when the answer is ready (io::race). The default waits for
  // ever.
  virtual Task<> wait_closed();
  // The same as a call, within a second or so, while the handler runs; costs nothing. Null takes it back,
  // which a handler must do before what the call uses is gone. The default never calls.
  virtual void when_closed(std::function<void()> call);

  // send() of a JSON text with its media type.
  Task<Result<void>> json(int status, std::string body);
};

using Handler = std::function<Task<>(Request&, ResponseWriter&)>;

struct ServerLimits {
  io::Duration head_timeout = std::chrono::seconds(30);  // from the first byte of a head to its end
  io::Duration idle_timeout =
      std::chrono::seconds(150);  // keep-alive; clients pool for 30 s and must never win that race
  io::Duration write_timeout = std::chrono::seconds(300);  // one write call that does not end
  io::Duration body_timeout = std::chrono::seconds(300);   // no byte of a request body for so long
  // A body that keeps its reader waiting pays with this credit, and every second's worth of bytes earns a
  // second of it back, up to all of it. Time in which nobody reads costs nothing.
  io::Duration body_credit = std::chrono::seconds(20);
  uint64_t body_rate = 1024;  // bytes per second
  // What is left of a body after the answer is thrown away for so long, to keep the connection or to let the
  // client read its answer before the connection ends.
  io::Duration linger = std::chrono::seconds(1);
  size_t max_connections = 4096;
};

class Server {
 public:
  Server(io::Executor executor, Handler handler, ServerLimits limits = {});
  ~Server();
  // Accepts until close(). `listener` is a listening socket of any stream family.
  Task<> serve(Fd listener);
  // Serves one connection that was accepted elsewhere, until it ends.
  void adopt(io::Socket socket);
  size_t connections() const;
  // Stops accepting, lets running requests finish for at most `grace`, then cuts them.
  Task<> close(io::Duration grace);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace osb::http
