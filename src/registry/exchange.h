#pragma once

// One request to a registry and its answer, read as strictly as everything else (http/head_parse.h).
// Blocking.

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "http/body_decoder.h"
#include "http/message.h"
#include "registry/connection.h"

namespace osb::registry {

struct HttpSettings {
  std::vector<std::string> authorities = {};  // certificates (PEM) believed besides the system's
  std::set<std::string> plain_hosts = {};     // "registry.example:5000": may be spoken to without TLS
  std::chrono::seconds patience = std::chrono::seconds(30);
};

// 127.0.0.0/8, ::1 and localhost: nobody is between.
bool is_loopback(const std::string& host);

class Answer {
 public:
  int status() const { return head_.status; }
  std::string_view field(std::string_view name) const { return head_.headers.get(name); }
  const http::Headers& fields() const { return head_.headers; }
  // What of the body is still to come, when the answer says so.
  std::optional<uint64_t> length() const { return decoder_.remaining(); }
  // The next bytes; 0 at its end. A body that ends too early is Code::unavailable.
  Result<size_t> read(std::span<char> into);
  // All of a small one; Code::too_large beyond the limit.
  Result<std::string> read_all(size_t limit);
  const Url& url() const { return url_; }  // who answered, after redirections

 private:
  friend class HttpClient;
  Answer(Connection connection, Url url) : connection_(std::move(connection)), url_(std::move(url)) {}
  Result<void> read_head(bool has_no_body);
  Result<size_t> fill();

  Connection connection_;
  Url url_;
  http::ResponseHead head_;
  http::BodyDecoder decoder_;
  std::string buffer_;  // received and not used yet, from used_ on
  size_t used_ = 0;
};

// What is sent with a request: a text, or a part of a file.
struct Body {
  std::string text = {};
  int file = -1;
  uint64_t offset = 0, size = 0;                 // of the file
  std::function<void(uint64_t)> told = nullptr;  // how many bytes of the file are sent

  uint64_t length() const { return file >= 0 ? size : text.size(); }
};

class HttpClient {
 public:
  explicit HttpClient(HttpSettings settings) : settings_(std::move(settings)) {}

  // GET, and where redirections lead from there: Authorization goes to no other origin. Plain HTTP goes to
  // loopback and to hosts that the settings name, and nowhere from TLS: Code::permission_denied.
  Result<Answer> get(Url url, http::Headers headers) {
    return send("GET", std::move(url), std::move(headers), {});
  }
  // The same with any method. What changes something is sent again only where the answer asks for the same
  // (307, 308); other redirections of it are the caller's answer.
  Result<Answer> send(const std::string& method, Url url, http::Headers headers, const Body& body);

  const HttpSettings& settings() const { return settings_; }

 private:
  Result<Answer> send_once(const std::string& method, const Url& url, const http::Headers& headers,
                           const Body& body);
  Result<void> check_plain(const Url& url) const;

  HttpSettings settings_;
  std::unique_ptr<tls::Trust> trust_;  // loaded when the first TLS address comes
};

}  // namespace osb::registry
