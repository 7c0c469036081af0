#include "interpreter/jupyter_port.h"

#include "base/log.h"
#include "base/strings.h"
#include "execd/reply.h"

namespace osb::interpreter {
namespace {

constexpr uint16_t kDefaultPort = 44771;
constexpr int kBacklog = 32;

}  // namespace

JupyterPort::JupyterPort(execd::Core& core, bool configured)
    : core_(core),
      configured_(configured),
      server_(core.executor, [](http::Request& q, http::ResponseWriter& r) { return answer(q, r); }) {}

io::Task<> JupyterPort::run() {
  if (!core_.ready.is_set()) co_await core_.ready.wait();
  if (configured_ || !core_.env.get("JUPYTER_HOST").empty()) co_return;
  uint16_t port = parse_number<uint16_t>(core_.env.get("JUPYTER_PORT")).value_or(kDefaultPort);
  auto listener = io::listen_tcp("127.0.0.1", port, kBacklog);
  if (!listener) {
    log::warn("the interpreter's port stays closed", {{"port", port}, {"reason", listener.error().message}});
    co_return;
  }
  co_await server_.serve(std::move(*listener));
}

io::Task<> JupyterPort::answer(http::Request& request, http::ResponseWriter& response) {
  std::string_view path = request.head.path();
  if (request.head.method == "GET" && (path == "/api" || path == "/api/")) {
    co_return co_await execd::reply_json(response, "{\"version\":\"execd " OSB_VERSION "\"}");
  }
  co_await execd::reply_error(response, {404, execd::codes::kNotFound,
                                         "this port only says that code can be executed; use execd's API"});
}

}  // namespace osb::interpreter
