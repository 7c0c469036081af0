#include "http/message.h"

#include "base/strings.h"

namespace osb::http {

const std::string* Headers::find(std::string_view name) const {
  for (const HeaderField& field : fields_) {
    if (field.name.size() == name.size() && iequals(field.name, name)) return &field.value;
  }
  return nullptr;
}

std::string_view Headers::get(std::string_view name) const {
  const std::string* value = find(name);
  return value ? std::string_view(*value) : std::string_view();
}

void Headers::set(std::string_view name, std::string value) {
  for (auto field = fields_.begin(); field != fields_.end(); ++field) {
    if (!iequals(field->name, name)) continue;
    field->value = std::move(value);
    std::erase_if(fields_, [&](const HeaderField& f) { return &f > &*field && iequals(f.name, name); });
    return;
  }
  add(std::string(name), std::move(value));
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_, [&](const HeaderField& field) {
    return field.name.size() == name.size() && iequals(field.name, name);
  });
}

void Headers::remove_if(bool (*unwanted)(std::string_view)) {
  std::erase_if(fields_, [&](const HeaderField& field) { return unwanted(field.name); });
}

std::string_view RequestHead::path() const {
  std::string_view path = std::string_view(target).substr(0, target.find('?'));
  while (path.size() > 1 && path[0] == '/' && path[1] == '/') path.remove_prefix(1);
  return path;
}

std::string_view RequestHead::query() const {
  size_t at = target.find('?');
  return at == target.npos ? std::string_view() : std::string_view(target).substr(at + 1);
}

Query::Query(std::string_view raw) {
  for (std::string_view pair : split(raw, '&')) {
    if (pair.empty()) continue;
    size_t equals = pair.find('=');
    std::string_view name = pair.substr(0, equals);
    std::string_view value = equals == pair.npos ? std::string_view() : pair.substr(equals + 1);
    pairs_.emplace_back(percent_decode(name, Plus::space).value_or(std::string(name)),
                        percent_decode(value, Plus::space).value_or(std::string(value)));
  }
}

std::optional<std::string> Query::get(std::string_view name) const {
  for (auto pair = pairs_.rbegin(); pair != pairs_.rend(); ++pair) {
    if (pair->first == name) return pair->second;
  }
  return std::nullopt;
}

std::vector<std::string> Query::all(std::string_view name) const {
  std::vector<std::string> out;
  for (const auto& [key, value] : pairs_) {
    if (key == name) out.push_back(value);
  }
  return out;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 203:
      return "Non-Authoritative Information";
    case 204:
      return "No Content";
    case 205:
      return "Reset Content";
    case 206:
      return "Partial Content";
    case 300:
      return "Multiple Choices";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 425:
      return "Too Early";
    case 426:
      return "Upgrade Required";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 451:
      return "Unavailable For Legal Reasons";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "";
  }
}

}  // namespace osb::http
