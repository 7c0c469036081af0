#include "io/look_up.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>

namespace osb::io {

Task<Result<std::vector<std::string>>> look_up(std::string host) {
  boost::system::error_code no_number;
  asio::ip::make_address(host, no_number);
  if (!no_number || host == "localhost") co_return std::vector{host};
  asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
  auto [unknown, found] = co_await resolver.async_resolve(host, "", asio::as_tuple(asio::deferred));
  if (unknown) co_return fail(Code::unavailable, "its address is not known: " + unknown.message());
  std::vector<std::string> addresses;
  for (const auto& entry : found) addresses.push_back(entry.endpoint().address().to_string());
  co_return addresses;
}

}  // namespace osb::io
