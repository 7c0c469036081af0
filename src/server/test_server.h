#pragma once

// For unit tests: the whole server over a real loopback socket, on the test's own loop, with a runtime that
// makes nothing. A test calls it like a client and looks at answers.

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <unistd.h>

#include <filesystem>

#include "base/log.h"
#include "http/client.h"
#include "json/decode.h"
#include "server/fake_runtime.h"
#include "server/serve.h"
#include "server/test_loop.h"

namespace osb::server {

struct Reply {
  int status = 0;
  http::Headers headers;
  std::string body;

  boost::json::value json() const {
    auto value = json::parse(body);
    EXPECT_TRUE(value) << body;
    return value ? *value : boost::json::value();
  }
  std::string text(std::string_view member) const {
    auto value = json();
    auto* found = value.is_object() ? value.get_object().if_contains(member) : nullptr;
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
  }
  std::string code() const { return text("code"); }
};

// Switches protocols and sends everything back, with a mark in front.
inline io::Task<> echo_tunnel(http::ResponseWriter& response) {
  http::Headers headers{{"Upgrade", "websocket"}, {"Connection", "Upgrade"}};
  EXPECT_TRUE(co_await response.start(101, std::move(headers), 0));
  EXPECT_TRUE(co_await response.finish());
  auto [socket, received] = response.take_over();
  std::array<char, 256> buffer;
  while (true) {
    auto got = co_await io::read_some(*socket, buffer);
    if (!got || *got == 0) co_return;
    if (!co_await io::write_all(*socket, "echo:" + std::string(buffer.data(), *got))) co_return;
  }
}

// How often each target below /breaks was asked for.
inline std::map<std::string, int>& broken_targets() {
  static std::map<std::string, int> targets;
  return targets;
}

// Says what it saw; a few paths answer in a special way.
inline io::Task<> echo_inside(http::Request& request, http::ResponseWriter& response) {
  std::string_view path = request.head.path();
  if (path == "/ws") co_return co_await echo_tunnel(response);
  auto body = co_await http::read_all(*request.body, 1 << 20);
  // The connection ends without an answer, the first time.
  if (path.starts_with("/breaks") && broken_targets()[request.head.target]++ == 0) {
    response.abort();
    co_return;
  }
  http::Headers headers{{"Content-Type", "text/plain"}, {"Server", "inside"}, {"X-Request-ID", "theirs"}};
  if (path == "/redirect") headers.add("Location", "/next?x=1");
  if (path == "/redirect-away") headers.add("Location", "//other.example/");
  if (path == "/cookies") {
    headers.add("Set-Cookie", "a=1");
    headers.add("Set-Cookie", "b=2");
  }
  std::string seen = request.head.method + " " + request.head.target + "\n";
  for (const auto& [name, value] : request.head.headers)
    seen.append(name).append(": ").append(value).append("\n");
  seen.append("\n").append(body.value_or("(broken)"));
  auto sent = co_await response.send(path == "/teapot" ? 418 : 200, std::move(headers), std::move(seen));
  EXPECT_TRUE(sent);
}

class TestServer {
 public:
  explicit TestServer(std::string_view toml = "", std::map<std::string, std::string> environment = {},
                      std::vector<Key> further_keys = {})
      : further_keys_(std::move(further_keys)),
        runtime(loop.executor(), echo_inside),
        stop_(loop.executor()) {
    std::string pattern = testing::TempDir() + "server_test.XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    log::set_level(log::Level::error);
    toml_ = std::string(toml) + "\n[native]\nstate_dir = \"" + directory_ + "\"\n";
    environment_ = std::move(environment);
    start();
  }
  ~TestServer() {
    stop();
    loop.await(runtime.close());
    std::filesystem::remove_all(directory_);
  }

  void start() {
    auto config = parse_config(toml_, "", [this](const char* name) -> const char* {
      auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    });
    ASSERT_TRUE(config) << config.error().message;
    auto listener = io::listen_tcp("127.0.0.1", 0, 64);
    ASSERT_TRUE(listener) << listener.error().message;
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    stop_.reset();
    running_ = loop.begin(run({.config = std::move(*config),
                               .tokens = EndpointTokens(std::string(kSecretBytes, 's')),
                               .listener = std::move(*listener),
                               .runtimes = &runtimes,
                               .stop = &stop_,
                               .further_keys = further_keys_,
                               .isolation = "test tier"}));
  }
  void stop() {
    if (!running_) return;
    stop_.set();
    auto result = loop.finish(running_);
    EXPECT_TRUE(result) << result.error().message;
    running_.reset();
  }

  // What a database that was lost leaves; between stop() and start().
  void lose_database() {
    std::vector<std::filesystem::path> lost;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      if (entry.path().filename().string().find(".db") != std::string::npos) lost.push_back(entry.path());
    }
    EXPECT_FALSE(lost.empty());
    for (const auto& path : lost) std::filesystem::remove(path);
  }

  std::string host() const { return "127.0.0.1:" + std::to_string(port); }

  io::Task<Result<http::Response>> exchange(std::string method, std::string target, http::Headers headers,
                                            std::string body) {
    if (!headers.contains("Host")) headers.add("Host", host());
    auto socket = CO_TRY(co_await io::connect_tcp("127.0.0.1", port));
    http::ClientConnection connection(std::move(socket));
    co_return co_await http::fetch(
        connection, {std::move(method), std::move(target), true, std::move(headers)}, std::move(body));
  }
  Reply call(std::string method, std::string target, std::string body = "", http::Headers headers = {}) {
    return to_reply(loop.await(
        exchange(std::move(method), std::move(target), with_type(std::move(headers), body), body)));
  }
  auto begin(std::string method, std::string target, std::string body = "", http::Headers headers = {}) {
    return loop.begin(
        exchange(std::move(method), std::move(target), with_type(std::move(headers), body), body));
  }
  static Reply to_reply(Result<http::Response> response) {
    EXPECT_TRUE(response) << response.error().message;
    if (!response) return {};
    return {response->head.status, std::move(response->head.headers), std::move(response->body)};
  }

  std::string create(std::string_view extra = "", http::Headers headers = {}) {
    Reply reply = call("POST", "/v1/sandboxes",
                       R"({"image":{"uri":"host"},"entrypoint":["sleep","9"],"resourceLimits":{})" +
                           std::string(extra) + "}",
                       std::move(headers));
    EXPECT_EQ(reply.status, 202) << reply.body;
    return reply.text("id");
  }

  TestLoop loop;

 private:
  std::vector<Key> further_keys_;

 public:
  FakeRuntime runtime;
  runtime::Runtimes runtimes{runtime};
  uint16_t port = 0;

 private:
  static http::Headers with_type(http::Headers headers, const std::string& body) {
    if (!body.empty() && !headers.contains("Content-Type")) headers.add("Content-Type", "application/json");
    return headers;
  }

  io::Event stop_;
  std::shared_ptr<TestLoop::Pending<Result<void>>> running_;
  std::string directory_, toml_;
  std::map<std::string, std::string> environment_;
};

}  // namespace osb::server
