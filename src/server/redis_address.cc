#include "server/redis_address.h"

#include <algorithm>

#include "base/strings.h"

namespace osb::server {
namespace {

constexpr size_t kMaxDsn = 2048;
constexpr size_t kMaxHost = 253;

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         c == '_';
}

bool is_address_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
}

Result<void> read_scheme(std::string_view& rest, RedisAddress& out) {
  constexpr auto kWrong = "must begin with redis:// or rediss://";
  size_t end = rest.find("://");
  if (end == rest.npos) return fail(Code::invalid_argument, kWrong);
  std::string scheme = to_lower(rest.substr(0, end));
  rest.remove_prefix(end + 3);
  out.tls = scheme == "rediss";
  if (scheme == "redis" || out.tls) return {};
  if (scheme == "unix") return fail(Code::unsupported, "unix:// is not supported by this server");
  return fail(Code::invalid_argument, kWrong);
}

// What clients of other languages read there about TLS. A certificate is always required: whoever asks for
// less is told so.
Result<void> read_query(std::string_view query, RedisAddress& out) {
  for (std::string_view pair : split(query, '&')) {
    size_t equals = std::min(pair.find('='), pair.size());
    std::string_view name = pair.substr(0, equals);
    auto value = percent_decode(pair.substr(std::min(equals + 1, pair.size())), Plus::space);
    if (!out.tls || (name != "ssl_ca_certs" && name != "ssl_cert_reqs"))
      return fail(Code::unsupported,
                  "has a query; user, password, host, port and database are all that is read, and of "
                  "rediss:// ssl_ca_certs");
    if (name == "ssl_cert_reqs") {
      if (value != "required") return fail(Code::unsupported, "has another ssl_cert_reqs than required");
      continue;
    }
    if (!value || !value->starts_with('/'))
      return fail(Code::invalid_argument, "has an ssl_ca_certs that is no absolute path");
    out.authority_file = std::move(*value);
  }
  return {};
}

Result<void> read_login(std::string_view login, RedisAddress& out) {
  size_t colon = login.find(':');
  auto user = percent_decode(login.substr(0, colon), Plus::literal);
  auto password = percent_decode(colon == login.npos ? "" : login.substr(colon + 1), Plus::literal);
  if (!user || !password)
    return fail(Code::invalid_argument, "has a broken escape in its user name or password");
  if (password->empty()) return fail(Code::invalid_argument, "has a user name without a password");
  out.user = std::move(*user);
  out.password = std::move(*password);
  return {};
}

Result<void> read_place(std::string_view place, RedisAddress& out) {
  std::string_view host = place, port;
  bool has_port = false;
  if (place.starts_with('[')) {
    size_t end = place.find(']');
    if (end == place.npos) return fail(Code::invalid_argument, "has a bracket without its end");
    host = place.substr(1, end - 1);
    if (!std::ranges::all_of(host, is_address_character))
      return fail(Code::invalid_argument, "has something in brackets that is no address");
    port = place.substr(end + 1);
    has_port = !port.empty();
    if (has_port && !port.starts_with(':'))
      return fail(Code::invalid_argument, "has something behind its bracket");
    if (has_port) port.remove_prefix(1);
  } else {
    size_t colon = place.find(':');
    host = place.substr(0, colon);
    has_port = colon != place.npos;
    if (has_port) port = place.substr(colon + 1);
    if (!std::ranges::all_of(host, is_host_character))
      return fail(Code::invalid_argument, "has a host that is no name or address");
  }
  if (host.empty() || host.size() > kMaxHost) return fail(Code::invalid_argument, "has no host");
  out.host = host;
  if (!has_port) return {};
  auto number = parse_number<uint16_t>(port);
  if (!number || *number == 0) return fail(Code::invalid_argument, "has a port that is no number to 65535");
  out.port = *number;
  return {};
}

}  // namespace

Result<RedisAddress> parse_redis_address(std::string_view dsn) {
  if (dsn.size() > kMaxDsn) return fail(Code::invalid_argument, "is too long");
  RedisAddress out;
  TRY(read_scheme(dsn, out));
  if (dsn.find('#') != dsn.npos) return fail(Code::unsupported, "has a fragment");
  if (size_t mark = dsn.find('?'); mark != dsn.npos) {
    TRY(read_query(dsn.substr(mark + 1), out));
    dsn = dsn.substr(0, mark);
  }
  // A password may have any character but a slash, which is the end.
  size_t slash = dsn.find('/');
  std::string_view authority = dsn.substr(0, slash);
  if (size_t at = authority.rfind('@'); at != authority.npos) {
    TRY(read_login(authority.substr(0, at), out));
    authority.remove_prefix(at + 1);
  }
  TRY(read_place(authority, out));
  std::string_view database = slash == dsn.npos ? "" : dsn.substr(slash + 1);
  if (database.empty()) return out;
  auto number = parse_number<uint32_t>(database);
  if (!number || *number > 65535) return fail(Code::invalid_argument, "has a database that is no number");
  out.database = *number;
  return out;
}

}  // namespace osb::server
