#include "http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

namespace load {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

double now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

bool Response::parse_head() {
  std::string_view head = rest();
  if (!head.starts_with("HTTP/1.1 ") || head.size() < 12) return false;
  status_ = atoi(std::string(head.substr(9, 3)).c_str());
  bool sized = false;
  bool chunked = false;
  size_t line = head.find("\r\n") + 2;
  while (line < head.size()) {
    size_t end = head.find("\r\n", line);
    if (end == line || end == std::string_view::npos) break;
    std::string_view field = head.substr(line, end - line);
    line = end + 2;
    size_t colon = field.find(':');
    if (colon == std::string_view::npos) return false;
    std::string_view name = field.substr(0, colon);
    std::string_view value = trim(field.substr(colon + 1));
    if (same_name(name, "content-length")) {
      sized = true;
      left_ = strtoul(std::string(value).c_str(), nullptr, 10);
    } else if (same_name(name, "transfer-encoding")) {
      chunked = same_name(value, "chunked");
    } else if (same_name(name, "connection")) {
      keep_alive_ = !same_name(value, "close");
    }
  }
  if (chunked) {
    state_ = State::chunk_size;
  } else if (sized || status_ == 204) {
    state_ = left_ == 0 ? State::done : State::sized;
  } else {
    return false;
  }
  return true;
}

bool Response::step(bool& progress) {
  std::string_view text = rest();
  switch (state_) {
    case State::head: {
      size_t end = text.find("\r\n\r\n");
      if (end == std::string_view::npos) return true;
      if (!parse_head()) return false;
      at_ += end + 4;
      break;
    }
    case State::sized:
    case State::chunk_data: {
      if (text.empty()) return true;
      size_t take = text.size() < left_ ? text.size() : left_;
      body_.append(text.substr(0, take));
      at_ += take;
      left_ -= take;
      if (left_ > 0) return true;
      state_ = state_ == State::sized ? State::done : State::chunk_end;
      break;
    }
    case State::chunk_end:
      if (text.size() < 2) return true;
      if (!text.starts_with("\r\n")) return false;
      at_ += 2;
      state_ = State::chunk_size;
      break;
    case State::chunk_size: {
      size_t end = text.find("\r\n");
      if (end == std::string_view::npos) return true;
      left_ = strtoul(std::string(text.substr(0, end)).c_str(), nullptr, 16);
      at_ += end + 2;
      state_ = left_ == 0 ? State::trailer : State::chunk_data;
      break;
    }
    case State::trailer: {
      size_t end = text.find("\r\n");
      if (end == std::string_view::npos) return true;
      at_ += end + 2;
      if (end == 0) state_ = State::done;
      break;
    }
    case State::done:
      return text.empty();  // bytes beyond the answer: nobody asked for them
  }
  progress = true;
  return true;
}

bool Response::feed(std::string_view bytes) {
  in_.append(bytes);
  bool progress = true;
  while (progress && state_ != State::done) {
    progress = false;
    if (!step(progress)) return false;
  }
  return state_ != State::done || rest().empty();
}

std::string make_request(std::string_view method, std::string_view path, int port, std::string_view json) {
  std::string text;
  text.append(method)
      .append(" ")
      .append(path)
      .append(" HTTP/1.1\r\nHost: 127.0.0.1:")
      .append(std::to_string(port));
  text.append("\r\n");
  if (!json.empty()) {
    text.append("Content-Type: application/json\r\nContent-Length: ")
        .append(std::to_string(json.size()))
        .append("\r\n");
  }
  return text.append("\r\n").append(json);
}

int connect_loopback(int port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

std::string Service::create() const {
  // No timeout: an idle sandbox of the density test must not expire under the measurement.
  return make_request(
      "POST", "/v1/sandboxes", port,
      R"({"image":{"uri":"host"},"entrypoint":["tail","-f","/dev/null"],"resourceLimits":{}})");
}

std::string Service::claim(std::string_view pool) const {
  return make_request(
      "POST", "/v1/sandboxes", port,
      R"({"extensions":{"poolRef":")" + std::string(pool) + R"("},"entrypoint":["tail","-f","/dev/null"]})");
}

std::string Service::run(std::string_view id, std::string_view command) const {
  std::string path = prefix + std::string(id) + suffix + "/command";
  return make_request("POST", path, port, "{\"command\":\"" + std::string(command) + "\"}");
}

std::string Service::code(std::string_view id, std::string_view context, std::string_view language,
                          std::string_view code) const {
  std::string where = "{\"language\":\"" + std::string(language) + "\"";
  if (!context.empty()) where += ",\"id\":\"" + std::string(context) + "\"";
  return make_request("POST", prefix + std::string(id) + suffix + "/code", port,
                      "{\"code\":\"" + std::string(code) + "\",\"context\":" + where + "}}");
}

std::string Service::context(std::string_view id, std::string_view language) const {
  return make_request("POST", prefix + std::string(id) + suffix + "/code/context", port,
                      "{\"language\":\"" + std::string(language) + "\"}");
}

std::string Service::ping(std::string_view id) const {
  return make_request("GET", prefix + std::string(id) + suffix + "/ping", port);
}

std::string Service::remove(std::string_view id) const {
  return make_request("DELETE", "/v1/sandboxes/" + std::string(id), port);
}

std::string Service::pause(std::string_view id) const {
  return make_request("POST", "/v1/sandboxes/" + std::string(id) + "/pause", port);
}

std::string Service::resume(std::string_view id) const {
  return make_request("POST", "/v1/sandboxes/" + std::string(id) + "/resume", port);
}

std::string Service::health() const { return make_request("GET", "/health", port); }

std::string find_id(std::string_view body) {
  constexpr std::string_view kMember = "\"id\":\"";
  size_t start = body.find(kMember);
  if (start == std::string_view::npos) return {};
  start += kMember.size();
  return std::string(body.substr(start, body.find('"', start) - start));
}

}  // namespace load
