#include "cli/secure.h"

#include <boost/asio/this_coro.hpp>

#include "base/fd.h"
#include "cli/block_on.h"
#include "tls/stream.h"

namespace osb::cli {
namespace {

Result<std::shared_ptr<const tls::Trust>> load_trust(const TlsFiles& files) {
  std::vector<std::string> authorities;
  if (!files.authority.empty())
    authorities.push_back(TRY(in_context("the file of the authority", read_file(files.authority))));
  auto trust = TRY(tls::Trust::load(authorities, "--ca-file, or in ca_file of the context"));
  if (files.certificate.empty() != files.key.empty())
    return fail(Code::invalid_argument,
                "a client certificate and its key go together: --client-cert and --client-key");
  if (!files.certificate.empty()) TRY(trust.identify(files.certificate, files.key));
  return std::make_shared<const tls::Trust>(std::move(trust));
}

}  // namespace

io::Task<Result<io::Socket>> Security::wrap(io::Socket plain, const std::string& host,
                                            const TlsFiles& files) {
  if (!trust_) trust_ = CO_TRY(load_trust(files));
  auto stream = CO_TRY(co_await tls::Stream::connect(*trust_, std::move(plain), host));
  co_return io::to_socket(tls::carried(std::move(stream)), co_await io::asio::this_coro::executor,
                          tasks_of_loop());
}

}  // namespace osb::cli
