#include "tls/stream.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>

namespace osb::tls {

using io::Task;

Task<Result<Stream>> Stream::connect(const Trust& trust, io::Socket socket, std::string host) {
  boost::system::error_code error;
  socket.native_non_blocking(true, error);
  if (error) co_return std::unexpected(io::to_error("TLS", error));
  Session session = CO_TRY(Session::prepare(trust, socket.native_handle(), host));
  Stream stream(std::move(socket), std::move(session));
  while (true) {
    Wait wait = CO_TRY(stream.session_.handshake());
    if (wait == Wait::nothing) co_return stream;
    CO_TRY(co_await stream.await(wait));
  }
}

Task<Result<void>> Stream::await(Wait wait) {
  auto [error] =
      co_await socket_.async_wait(wait == Wait::readable ? io::Socket::wait_read : io::Socket::wait_write,
                                  io::asio::as_tuple(io::asio::deferred));
  if (error) co_return std::unexpected(io::to_error("TLS", error));
  co_return Result<void>{};
}

Task<Result<size_t>> Stream::read_some(std::span<char> into) {
  while (true) {
    Session::Got got = CO_TRY(session_.read_now(into));
    if (got.wait == Wait::nothing) co_return got.count;
    CO_TRY(co_await await(got.wait));
  }
}

Task<Result<void>> Stream::write_all(std::string_view bytes) {
  while (true) {
    Wait wait = CO_TRY(session_.write_now(bytes));
    if (wait == Wait::nothing) co_return Result<void>{};
    CO_TRY(co_await await(wait));
  }
}

void Stream::shutdown_send() {
  session_.end_writing();
  boost::system::error_code ignored;
  socket_.shutdown(io::Socket::shutdown_send, ignored);
}

namespace {

class Carried final : public io::ForeignStream {
 public:
  explicit Carried(Stream stream) : stream_(std::move(stream)) {}
  Task<Result<size_t>> read_some(std::span<char> into) override { return stream_.read_some(into); }
  Task<Result<void>> write_all(std::string_view bytes) override { return stream_.write_all(bytes); }
  void shutdown_send() override { stream_.shutdown_send(); }

 private:
  Stream stream_;
};

}  // namespace

io::Stream carried(Stream stream) { return io::Stream(std::make_unique<Carried>(std::move(stream))); }

}  // namespace osb::tls
