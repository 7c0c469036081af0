#include "cli/api.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <boost/json/object.hpp>

#include "base/ids.h"
#include "base/strings.h"
#include "cli/api_error.h"
#include "cli/occasion.h"
#include "io/socket.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using namespace std::chrono_literals;

constexpr auto kConnectTime = 5s;
constexpr auto kCallTime = 30s;
constexpr auto kCreateTime = 300s;  // an image may have to be fetched first
constexpr auto kPendingLook = 500ms;
constexpr auto kOccasionLook = 20ms;
constexpr int kOccasionTries = 100;
constexpr auto kUploadTime = 300s;
constexpr auto kFirstByteTime = 30s;  // of a command's stream: execd answers at once
constexpr size_t kBodyLimit = 16 << 20;
constexpr int kExecdPort = 44772;
constexpr std::string_view kAsRoot = "/v1/filesystem/0/0";

// Every address of a host name, as numbers.
Result<std::vector<std::string>> resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return fail(Code::not_found, fmt::format("{}: {}", host, ::gai_strerror(error)));
  }
  std::vector<std::string> numbers;
  for (addrinfo* a = found; a; a = a->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) {
      numbers.emplace_back(text);
    }
  }
  ::freeaddrinfo(found);
  return numbers;
}

Error unreachable(const ServerAddress& server, const Error& cause) {
  return {Code::unavailable, cause.sys_errno,
          fmt::format("SERVER::UNREACHABLE: no server answers at {}\n  cause: {}\n  remedy: start one with "
                      "`sudo opensandbox-server` (in a checkout: ./quickstart), or name another with "
                      "--server HOST:PORT or "
                      "OPEN_SANDBOX_DOMAIN",
                      server.authority(), cause.message)};
}

Error untrusted(const ServerAddress& server, const Error& cause) {
  return {cause.code, 0,
          fmt::format("SERVER::UNTRUSTED: no TLS connection to {}\n  cause: {}\n  remedy: name the authority "
                      "of the server's certificate with --ca-file FILE before the command, or in a context "
                      "(osb context add); http:// is for a server that speaks no TLS",
                      server.authority(), cause.message)};
}

bj::object policy_for(const std::string& network) {
  bj::array rules;
  if (network == "open") return {{"defaultAction", "allow"}, {"egress", std::move(rules)}};
  for (std::string_view target : split(network == "none" ? "" : network, ',')) {
    if (!trim(target).empty()) rules.push_back(bj::object{{"action", "allow"}, {"target", trim(target)}});
  }
  return {{"defaultAction", "deny"}, {"egress", std::move(rules)}};
}

bool is_success(int status) { return status >= 200 && status < 300; }

bj::array volumes_for(const std::vector<VolumeArgument>& volumes) {
  bj::array out;
  for (const VolumeArgument& one : volumes) {
    bj::object volume{{"name", "volume-" + std::to_string(out.size() + 1)},
                      {"mountPath", one.path},
                      {"readOnly", one.read_only}};
    if (one.source.starts_with('/'))
      volume["host"] = bj::object{{"path", one.source}};
    else
      volume["pvc"] = bj::object{{"claimName", one.source}};
    out.push_back(std::move(volume));
  }
  return out;
}

// For io::race().
Task<> keep(Result<bj::value>* into, Task<Result<bj::value>> task) { *into = co_await std::move(task); }

}  // namespace

Error Api::foreign(std::string_view what) const {
  return {Code::corrupt, 0,
          fmt::format("SERVER::FOREIGN: what answers at {} is no OpenSandbox server\n  cause: {}\n  remedy: "
                      "check --server and "
                      "OPEN_SANDBOX_DOMAIN",
                      to_.server.authority(), what)};
}

Result<bj::object> Api::object_in(Result<bj::value> answer) const {
  bj::value value = TRY(std::move(answer));
  if (!value.is_object()) return std::unexpected(foreign("the answer is no object"));
  return std::move(value.as_object());
}

Result<std::string> text_of(const bj::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  if (!value || !value->is_string())
    return fail(Code::corrupt, fmt::format("the answer has no \"{}\"", name));
  return std::string(value->as_string());
}

// A plain connection to the first address that takes one.
Task<Result<io::Socket>> Api::dial() {
  auto addresses = CO_TRY(resolve(to_.server.host));
  Error last{Code::not_found, 0, "no address"};
  for (const std::string& address : addresses) {
    auto socket =
        co_await io::with_deadline(kConnectTime, "connect", io::connect_tcp(address, to_.server.port));
    if (socket) co_return std::move(*socket);
    last = socket.error();
  }
  co_return std::unexpected(last);
}

Task<Result<http::ClientConnection>> Api::connect() {
  auto plain = co_await dial();
  if (!plain && to_.occasion != Occasion::none && plain.error().sys_errno == ECONNREFUSED) {
    // One that is about to end has a record and no port any more, for a moment.
    for (int tries = 0; !plain && tries < kOccasionTries; ++tries) {
      if (tries > 0) co_await io::sleep_for(kOccasionLook);
      auto found = co_await occasion_server(to_);
      if (!found && to_.occasion == Occasion::start) co_return std::unexpected(std::move(found.error()));
      if (!found) break;
      to_ = std::move(*found);
      plain = co_await dial();
    }
  }
  if (!plain) co_return std::unexpected(unreachable(to_.server, plain.error()));
  if (!to_.server.tls) co_return http::ClientConnection(std::move(*plain));
  auto secure = co_await io::with_deadline(kConnectTime, "TLS",
                                           security_.wrap(std::move(*plain), to_.server.host, to_.tls));
  if (!secure) co_return std::unexpected(untrusted(to_.server, secure.error()));
  co_return http::ClientConnection(std::move(*secure));
}

http::RequestHead Api::head(std::string method, std::string target) const {
  http::RequestHead head;
  head.method = std::move(method);
  head.target = to_.server.prefix + target;
  head.headers = {{"Host", to_.server.authority()}, {"User-Agent", "osb/" OSB_VERSION}, {"Accept", "*/*"}};
  // Also to a sandbox's ports: the key opens them without asking for an endpoint first, and the server keeps
  // it from the sandbox.
  if (!to_.api_key.empty()) head.headers.add("OPEN-SANDBOX-API-KEY", to_.api_key);
  for (const auto& [name, value] : unlocking_) head.headers.add(name, value);
  return head;
}

std::string Api::execd(const std::string& id, std::string_view route) const {
  return fmt::format("/sandboxes/{}/proxy/{}{}", percent_encode(id), kExecdPort, route);
}

Task<Result<std::string>> Api::exchange_text(std::string method, std::string target, std::string body) {
  auto connection = CO_TRY(co_await connect());
  auto request = head(std::move(method), std::move(target));
  if (!body.empty()) request.headers.add("Content-Type", "application/json");
  auto answer = CO_TRY(co_await http::fetch(connection, std::move(request), std::move(body), kBodyLimit));
  if (!is_success(answer.head.status)) co_return std::unexpected(api_error(answer.head.status, answer.body));
  co_return std::move(answer.body);
}

Task<Result<std::string>> Api::text(std::string target) {
  std::string what = "GET " + target;
  return io::with_deadline(kCallTime, what, exchange_text("GET", std::move(target), ""));
}

Task<Result<bj::value>> Api::exchange(std::string method, std::string target, std::string body) {
  auto text = CO_TRY(co_await exchange_text(std::move(method), std::move(target), std::move(body)));
  if (text.empty()) co_return bj::value();
  auto value = json::parse(text);
  if (!value) co_return std::unexpected(foreign(value.error().message));
  co_return std::move(*value);
}

Task<Result<bj::value>> Api::call(std::string method, std::string target, std::string body,
                                  io::Duration limit) {
  std::string what = method + " " + target;
  return io::with_deadline(limit, what, exchange(std::move(method), std::move(target), std::move(body)));
}

Task<Result<void>> Api::health() {
  auto answer = CO_TRY(co_await call("GET", "/health", "", kConnectTime));
  const auto* status = answer.is_object() ? answer.as_object().if_contains("status") : nullptr;
  if (!status || *status != "healthy") co_return std::unexpected(foreign("/health does not say \"healthy\""));
  co_return Result<void>{};
}

Task<Result<void>> Api::check_key() {
  CO_TRY(co_await call("GET", "/v1/sandboxes?page=1&pageSize=1", "", kConnectTime));
  co_return Result<void>{};
}

Task<Result<bj::value>> Api::ask(std::string method, std::string target, std::string body) {
  return call(std::move(method), std::move(target), std::move(body),
              std::max<io::Duration>(kCreateTime, to_.patience));
}

Task<Result<bj::object>> Api::create(NewSandbox what, PullWatch watch) {
  std::string image = what.image;
  auto sandbox = CO_TRY(co_await begin(std::move(what), watch));
  co_return co_await until_started(std::move(sandbox), std::move(image), std::move(watch));
}

Task<Result<bj::object>> Api::begin(NewSandbox what, PullWatch watch) {
  bj::object limits, env;
  if (!what.cpu.empty()) limits["cpu"] = what.cpu;
  if (!what.memory.empty()) limits["memory"] = what.memory;
  if (!what.disk.empty()) limits["disk"] = what.disk;
  if (!what.pids.empty()) limits["pids"] = what.pids;
  for (const auto& [name, value] : what.env) env[name] = value;
  bj::array entrypoint(what.entrypoint.begin(), what.entrypoint.end());
  if (entrypoint.empty()) entrypoint = {"tail", "-f", "/dev/null"};
  bj::object body{{"image", {{"uri", what.image}}},
                  {"entrypoint", std::move(entrypoint)},
                  {"resourceLimits", std::move(limits)},
                  {"env", std::move(env)}};
  if (what.timeout) body["timeout"] = what.timeout->count();
  if (!what.name.empty()) body["metadata"] = bj::object{{kNameKey, what.name}};
  if (!what.network.empty()) body["networkPolicy"] = policy_for(what.network);
  if (!what.volumes.empty()) body["volumes"] = volumes_for(what.volumes);
  bj::object extensions;
  if (!what.shm.empty()) extensions["opensandbox.extensions.shm-size"] = what.shm;
  if (!what.runtime.empty()) extensions["opensandbox.extensions.runtime"] = what.runtime;
  if (!what.pull_policy.empty()) extensions["opensandbox.extensions.image-pull-policy"] = what.pull_policy;
  if (!extensions.empty()) body["extensions"] = std::move(extensions);
  Result<bj::value> answer = fail(Code::cancelled, "nobody waits for the sandbox");
  auto asking = call("POST", "/v1/sandboxes", json::print(body), kCreateTime);
  if (watch)
    co_await io::race(keep(&answer, std::move(asking)), watch_pull(what.image, watch));
  else
    answer = co_await std::move(asking);
  if (watch) watch({});
  co_return object_in(std::move(answer));
}

// Its image may still be on the way; the server says how far it is.
Task<Result<bj::object>> Api::until_started(bj::object sandbox, std::string image, PullWatch watch) {
  std::string id = CO_TRY(text_of(sandbox, "id"));
  while (true) {
    bj::value value = sandbox;
    json::Issues ignored;
    auto status = json::Field::root(value, ignored, "sandbox")["status"];
    std::string state = status["state"].string().value_or(""), why = status["message"].string().value_or("");
    if (watch && state != "Pending") watch({});
    if (state != "Pending" && state != "Failed") co_return sandbox;
    if (state == "Failed") {
      (void)co_await remove(id);
      co_return fail(Code::unavailable, why);
    }
    if (watch) {
      // An engine pulls by itself; how far it is stands in the sandbox's own status.
      auto pull = co_await pull_state(image);
      watch(pull ? *pull : bj::value(bj::object{{"message", why}}));
    }
    co_await io::sleep_for(kPendingLook);
    sandbox = CO_TRY(co_await get(id));
  }
}

Task<Result<bj::object>> Api::get(std::string id) {
  co_return object_in(co_await call("GET", "/v1/sandboxes/" + percent_encode(id), "", kCallTime));
}

Task<Result<std::vector<bj::value>>> Api::list() {
  constexpr int kMaxPages = 1000;
  std::vector<bj::value> items;
  for (int page = 1; page <= kMaxPages; ++page) {
    auto target = fmt::format("/v1/sandboxes?page={}&pageSize=200", page);
    auto answer = CO_TRY(co_await call("GET", std::move(target), "", kCallTime));
    json::Issues issues;
    auto root = json::Field::root(answer, issues, "answer");
    auto found = root["items"].array();
    bool more = root["pagination"]["hasNextPage"].boolean().value_or(false);
    if (!found || !issues.empty()) co_return std::unexpected(foreign("the list has no items"));
    for (const auto& item : *found) {
      if (item.raw() && item.raw()->is_object()) items.push_back(*item.raw());
    }
    if (!more) break;
  }
  co_return items;
}

Task<Result<void>> Api::renew(std::string id, std::string expires_at) {
  auto target = fmt::format("/v1/sandboxes/{}/renew-expiration", percent_encode(id));
  CO_TRY(co_await call("POST", std::move(target), json::print(bj::object{{"expiresAt", expires_at}}),
                       kCallTime));
  co_return Result<void>{};
}

Task<Result<void>> Api::remove(std::string id) {
  CO_TRY(co_await call("DELETE", "/v1/sandboxes/" + percent_encode(id), "", kCallTime));
  co_return Result<void>{};
}

Task<Result<http::ClientConnection>> Api::start_stream(std::string target, std::string body,
                                                       std::string method) {
  auto connection = CO_TRY(co_await connect());
  auto request = head(std::move(method), std::move(target));
  request.headers.set("Accept", "text/event-stream");
  request.headers.add("Content-Type", "application/json");
  CO_TRY(co_await connection.send_head(std::move(request), body.size()));
  CO_TRY(co_await connection.write(body));
  CO_TRY(co_await connection.finish());
  auto answer = CO_TRY(co_await connection.read_head());
  if (!is_success(answer.status)) {
    auto words = co_await http::read_all(connection.body(), kBodyLimit);
    co_return std::unexpected(api_error(answer.status, words.value_or("")));
  }
  co_return std::move(connection);
}

Task<Result<StreamEvent>> Api::run_code(std::string id, std::string language, std::string code,
                                        OutputSink sink) {
  bj::object body{{"code", code}, {"context", {{"language", language}}}};
  auto connection = CO_TRY(co_await io::with_deadline(kFirstByteTime, "start the cell",
                                                      start_stream(execd(id, "/code"), json::print(body))));
  co_return co_await follow(std::move(connection), EventParser(EventParser::Source::cell), std::move(sink));
}

Task<Result<http::ClientConnection>> Api::change_to_bytes(std::string id, uint16_t port) {
  CO_TRY(co_await unlock(id));
  auto request = head("GET", fmt::format("/v1/sandboxes/{}/proxy/{}", percent_encode(id), port));
  request.headers.add("Connection", "Upgrade");
  request.headers.add("Upgrade", "opensandbox-tcp");
  auto connection = CO_TRY(co_await connect());
  CO_TRY(co_await connection.send_head(std::move(request), 0));
  auto answer = CO_TRY(co_await connection.read_head());
  if (answer.status == 101) co_return std::move(connection);
  auto words = co_await http::read_all(connection.body(), kBodyLimit);
  co_return std::unexpected(api_error(answer.status, words.value_or("")));
}

Task<Result<http::ClientConnection>> Api::open_port(std::string id, uint16_t port) {
  return io::with_deadline(kFirstByteTime, "open the port", change_to_bytes(std::move(id), port));
}

Task<Result<void>> Api::interrupt(std::string id, std::string context) {
  CO_TRY(co_await call("DELETE", execd(id, "/code?id=" + percent_encode(context)), "", kCallTime));
  co_return Result<void>{};
}

Task<Result<void>> Api::interrupt_command(std::string id, std::string command) {
  CO_TRY(co_await call("DELETE", execd(id, "/command?id=" + percent_encode(command)), "", kCallTime));
  co_return Result<void>{};
}

Task<Result<std::string>> Api::find(std::string name) {
  if (is_uuid(name)) co_return name;
  std::vector<std::string> named, found;
  for (const bj::value& one : CO_TRY(co_await list())) {
    if (!one.is_object()) continue;
    std::string id = CO_TRY(text_of(one.as_object(), "id"));
    if (id == name) co_return id;
    const auto* metadata = one.as_object().if_contains("metadata");
    if (metadata && metadata->is_object() && text_of(metadata->as_object(), kNameKey).value_or("") == name)
      named.push_back(id);
    if (id.starts_with(name)) found.push_back(std::move(id));
  }
  if (named.size() > 1)
    co_return fail(Code::invalid_argument,
                   fmt::format("{} sandboxes have this name; use an id", named.size()));
  if (named.size() == 1 && !name.empty()) co_return named.front();
  if (found.size() == 1 && !name.empty()) co_return found.front();
  if (found.empty())
    co_return fail(Code::not_found, "no sandbox has an id that begins so, or this name; see: osb ls");
  co_return fail(Code::invalid_argument,
                 fmt::format("{} sandboxes have ids that begin so; write more of it", found.size()));
}

Task<Result<void>> Api::unlock(std::string id) {
  auto endpoint = CO_TRY(co_await call(
      "GET", fmt::format("/v1/sandboxes/{}/endpoints/{}", percent_encode(id), kExecdPort), "", kCallTime));
  unlocking_ = {};
  const auto* headers = endpoint.is_object() ? endpoint.as_object().if_contains("headers") : nullptr;
  if (!headers || !headers->is_object()) co_return Result<void>();
  for (const auto& [name, value] : headers->as_object())
    if (value.is_string()) unlocking_.add(std::string(name), std::string(value.as_string()));
  co_return Result<void>();
}

Task<Result<StreamEvent>> Api::follow(http::ClientConnection connection, EventParser parser,
                                      OutputSink sink) {
  std::array<char, 32768> buffer;
  for (;;) {
    size_t n = CO_TRY(co_await connection.body().read_some(buffer));
    if (n == 0) co_return fail(Code::unavailable, "the stream ended before the command did");
    auto events = CO_TRY(parser.feed({buffer.data(), n}));
    for (StreamEvent& event : events) {
      if (event.kind == StreamEvent::Kind::complete || event.kind == StreamEvent::Kind::failed)
        co_return std::move(event);
      CO_TRY(sink(event));
    }
  }
}

Task<Result<void>> Api::upload(std::string id, std::string path, int mode, std::string_view bytes) {
  std::vector<UploadedFile> files;
  files.push_back(
      {.path = std::move(path), .mode = mode, .owner = "", .group = "", .bytes = std::string(bytes)});
  return send_files(execd(id, "/files/upload"), std::move(files));
}

Task<Result<void>> Api::upload_files(std::string id, std::vector<UploadedFile> files) {
  return send_files(execd(id, std::string(kAsRoot) + "/files/upload"), std::move(files));
}

Task<Result<void>> Api::send_files(std::string target, std::vector<UploadedFile> files) {
  std::string boundary = "osb-" + new_hex_id(), body;
  auto part = [&](std::string_view name, std::string_view type) {
    return fmt::format(
        "--{}\r\nContent-Disposition: form-data; name=\"{}\"; filename=\"{}\"\r\nContent-Type: {}\r\n\r\n",
        boundary, name, name, type);
  };
  for (UploadedFile& file : files) {
    bj::object metadata{{"path", file.path}};
    if (file.mode != 0) metadata["mode"] = file.mode;
    if (!file.owner.empty()) metadata["owner"] = file.owner;
    if (!file.group.empty()) metadata["group"] = file.group;
    body += part("metadata", "application/json") + json::print(metadata) + "\r\n" +
            part("file", "application/octet-stream");
    body.append(file.bytes).append("\r\n");
    file.bytes = {};
  }
  body.append("--").append(boundary).append("--\r\n");

  auto connection = CO_TRY(co_await connect());
  auto request = head("POST", std::move(target));
  request.headers.add("Content-Type", "multipart/form-data; boundary=" + boundary);
  auto answer = CO_TRY(co_await io::with_deadline(
      kUploadTime, "upload", http::fetch(connection, std::move(request), std::move(body), kBodyLimit)));
  if (!is_success(answer.head.status)) co_return std::unexpected(api_error(answer.head.status, answer.body));
  co_return Result<void>{};
}

Task<Result<bj::value>> Api::ask_execd(std::string id, std::string method, std::string target,
                                       std::string body) {
  return call(std::move(method), execd(id, std::string(kAsRoot) + target), std::move(body), kUploadTime);
}

Task<Result<std::string>> Api::download(std::string id, std::string path, size_t limit) {
  auto connection = CO_TRY(co_await connect());
  auto request =
      head("GET", execd(id, std::string(kAsRoot) + "/files/download?path=" + percent_encode(path)));
  auto answer = CO_TRY(co_await io::with_deadline(kUploadTime, "download",
                                                  http::fetch(connection, std::move(request), "", limit)));
  if (!is_success(answer.head.status)) co_return std::unexpected(api_error(answer.head.status, answer.body));
  co_return std::move(answer.body);
}

}  // namespace osb::cli
