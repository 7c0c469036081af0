#pragma once

// A notebook server, as far as executing code needs it: its REST API over plain HTTP, one connection per
// call.

#include <boost/json/value.hpp>

#include "http/client.h"

namespace osb::interpreter {

struct JupyterAddress {
  std::string host;
  uint16_t port = 80;
  std::string base;  // of all paths, without a final slash
  std::string token;
};

// http://127.0.0.1:44771[/base]. Code::unsupported for https, Code::invalid_argument for what is no such URL.
Result<JupyterAddress> parse_jupyter_url(std::string_view url, std::string token);

class JupyterServer {
 public:
  explicit JupyterServer(JupyterAddress address) : address_(std::move(address)) {}

  const JupyterAddress& address() const { return address_; }
  // The answer's JSON (null for an empty one). Code::unavailable when nobody answers, Code::internal with the
  // status for a refusal.
  io::Task<Result<boost::json::value>> call(std::string method, std::string path,
                                            std::string body = {}) const;
  // For upgrades.
  io::Task<Result<http::ClientConnection>> connect() const;
  http::RequestHead head(std::string method, const std::string& path) const;

 private:
  io::Task<Result<http::Response>> exchange(std::string method, std::string path, std::string body) const;

  JupyterAddress address_;
};

}  // namespace osb::interpreter
