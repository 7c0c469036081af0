#include "docker/exec_stream.h"

namespace osb::docker {
namespace {

constexpr size_t kPiece = 16 * 1024;

}  // namespace

ExecStream::ExecStream(Link link)
    : link_(std::move(link)), piece_(std::make_unique_for_overwrite<char[]>(kPiece)) {
  frames_.feed(link_.connection.take_buffered());
}

Task<Result<size_t>> ExecStream::read_some(std::span<char> into) {
  while (true) {
    size_t taken = CO_TRY(frames_.take(into));
    if (taken > 0 || frames_.ended()) co_return taken;
    auto got = co_await io::read_some(link_.connection.socket(), {piece_.get(), kPiece});
    if (!got) co_return std::unexpected(link_.cause(std::move(got.error())));
    if (*got == 0)
      co_return std::unexpected(link_.cause({Code::unavailable, 0, "the engine has ended the connection"}));
    frames_.feed({piece_.get(), *got});
  }
}

Task<Result<void>> ExecStream::write_all(std::string_view bytes) {
  auto written = co_await io::write_all(link_.connection.socket(), bytes);
  if (!written) co_return std::unexpected(link_.cause(std::move(written.error())));
  co_return written;
}

void ExecStream::shutdown_send() {
  boost::system::error_code ignored;
  link_.connection.socket().shutdown(io::Socket::shutdown_send, ignored);
}

}  // namespace osb::docker
