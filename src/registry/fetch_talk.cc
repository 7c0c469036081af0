#include "registry/fetch_talk.h"

#include <poll.h>

#include <algorithm>

#include "base/machine.h"

namespace osb::registry {
namespace {

using Clock = std::chrono::steady_clock;

// Where the API of a registry is, by the name that people use.
std::string api_host(const std::string& registry) {
  return registry == image::kDockerHub ? "registry-1.docker.io" : registry;
}

// By TLS, unless the configuration says otherwise; a registry on loopback says itself what it speaks.
Result<FetchSource> source_of(const std::string& registry, const HttpSettings& http) {
  std::string host = api_host(registry);
  bool plain = http.plain_hosts.contains(host);
  FetchSource source{.base = TRY(parse_url((plain ? "http://" : "https://") + host))};
  source.perhaps_plain = !plain && is_loopback(source.base.host);
  return source;
}

Result<std::map<std::string, Login>> logins_of(const KeeperSettings& settings) {
  if (settings.auth_file.empty()) return std::map<std::string, Login>();
  auto text = read_file(settings.auth_file);
  if (!text) return own_fault(std::move(text.error()).in("registry.auth_file"));
  auto parsed = parse_login_file(*text);
  if (!parsed) return own_fault(std::move(parsed.error()).in("registry.auth_file " + settings.auth_file));
  return parsed;
}

}  // namespace

std::unexpected<Error> own_fault(Error error) {
  if (error.sys_errno != ENOSPC && error.sys_errno != EDQUOT) error.code = Code::internal;
  return std::unexpected(std::move(error));
}

Result<FetchOrder> fetch_order(const KeeperSettings& settings, const image::PullReference& reference,
                               const FetchRights& rights) {
  std::map<std::string, Login> logins;
  if (rights.own_logins) logins = TRY(logins_of(settings));
  auto login_for = [&](const std::string& host) -> std::optional<Login> {
    auto found = logins.find(host);
    return found == logins.end() ? std::nullopt : std::optional(found->second);
  };
  FetchOrder order{.sources = {},
                   .repository = reference.repository,
                   .version = reference.version(),
                   .platform = "linux/" + std::string(host_architecture()),
                   .http = settings.http};
  for (const std::string& file : settings.ca_files) {
    auto text = read_file(file);
    if (!text) return own_fault(std::move(text.error()).in("registry.ca_files"));
    order.http.authorities.push_back(std::move(*text));
  }
  auto mirror = settings.mirrors.find(reference.registry);
  if (rights.mirrors && mirror != settings.mirrors.end()) {
    // Whose password the request has is the registry's; a mirror has its own, or none.
    Url base = TRY(parse_url(mirror->second));
    auto login = login_for(base.authority());
    order.sources.push_back({.base = std::move(base), .login = std::move(login)});
  }
  FetchSource registry = TRY(source_of(reference.registry, settings.http));
  registry.login = rights.login ? rights.login : login_for(reference.registry);
  order.sources.push_back(std::move(registry));
  return order;
}

Result<std::optional<FetchEvent>> FetchTalk::hear(Clock::time_point until) {
  auto frame = TRY(frames_.next());
  if (!frame) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return fail(Code::timeout, "the registry does not answer");
    pollfd fds[2] = {{socket_, POLLIN, 0}, {cancel_fd_, POLLIN, 0}};
    if (::poll(fds, 2, static_cast<int>(std::min<int64_t>(left, 60'000))) < 0 && errno != EINTR)
      return fail_errno("poll");
    if (fds[1].revents) return fail(Code::cancelled, "nobody waits for it any more");
    if (!fds[0].revents) return std::optional<FetchEvent>();
    auto some = frames_.receive_some();
    if (!some) return fail(Code::internal, "the process that speaks to the registry has ended");
    frame = std::move(*some);
  }
  if (!frame) return std::optional<FetchEvent>();
  auto event = decode_fetch_event(*frame);
  if (!event) return fail(Code::internal, "the process that speaks to the registry spoke nonsense");
  if (event->kind == FetchEvent::Kind::failed) return std::unexpected(std::move(event->error));
  return std::optional(std::move(*event));
}

}  // namespace osb::registry
