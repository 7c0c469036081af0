#include "http/router.h"

#include <algorithm>

#include "base/strings.h"

namespace osb::http {
namespace {

constexpr std::string_view kRest = "{rest...}";
constexpr size_t kMaxSegments = 32;

// The segments of "/a/b/c" are a, b, c; those of "/a/" are a and an empty one; "/" has none.
struct Segments {
  std::string_view items[kMaxSegments];
  size_t ends[kMaxSegments];  // position behind each in the path
  size_t count = 0;
  bool too_many = false;
};

Segments split_path(std::string_view path) {
  Segments out;
  if (path == "/" || path.empty()) return out;
  size_t from = path[0] == '/' ? 1 : 0;
  while (true) {
    if (out.count == kMaxSegments) {
      out.too_many = true;
      return out;
    }
    size_t to = std::min(path.find('/', from), path.size());
    out.items[out.count] = path.substr(from, to - from);
    out.ends[out.count++] = to;
    if (to == path.size()) return out;
    from = to + 1;
  }
}

}  // namespace

struct Router::Route {
  struct Segment {
    std::string text;  // literal, or the name of the parameter
    bool parameter = false;
  };
  std::string method;
  std::vector<Segment> segments;
  bool rest = false;
  Handler handler;

  bool matches(const Segments& path) const {
    if (rest ? path.count < segments.size() : path.too_many || path.count != segments.size()) return false;
    for (size_t i = 0; i < segments.size(); ++i) {
      if (segments[i].parameter ? path.items[i].empty() : segments[i].text != path.items[i]) return false;
    }
    return true;
  }

  // Literal before parameter, decided at the first segment where two routes differ; an end before a rest.
  bool better_than(const Route& other) const {
    size_t common = std::min(segments.size(), other.segments.size());
    for (size_t i = 0; i < common; ++i) {
      if (segments[i].parameter != other.segments[i].parameter) return other.segments[i].parameter;
    }
    return segments.size() > other.segments.size() || (!rest && other.rest);
  }
};

void Router::add(std::string method, std::string pattern, Handler handler) {
  auto route = std::make_shared<Route>();
  std::string_view left = pattern;
  if (left.ends_with(kRest)) {
    route->rest = true;
    left.remove_suffix(kRest.size());
  }
  Segments parts = split_path(left);
  for (size_t i = 0; i < parts.count; ++i) {
    std::string_view part = parts.items[i];
    bool parameter = part.size() > 2 && part.starts_with('{') && part.ends_with('}');
    if (parameter) part = part.substr(1, part.size() - 2);
    route->segments.push_back({std::string(part), parameter});
  }
  route->method = std::move(method);
  route->handler = std::move(handler);
  if (route->rest) return open_ended_.push_back(std::move(route));
  size_t count = route->segments.size();
  if (by_count_.size() <= count) by_count_.resize(count + 1);
  by_count_[count].push_back(std::move(route));
}

Router::Match Router::find(std::string_view method, std::string_view raw_path) const {
  Match match;
  Segments path = split_path(raw_path);
  const Route* best = nullptr;
  auto look_at = [&](const Routes& routes) {
    for (const auto& route : routes) {
      if (!route->matches(path)) continue;
      bool allowed = route->method == "*" || route->method == method;
      if (!allowed) {
        if (std::ranges::find(match.allowed, route->method) == match.allowed.end())
          match.allowed.push_back(route->method);
      } else if (!best || route->better_than(*best)) {
        best = route.get();
      }
    }
  };
  if (!path.too_many && path.count < by_count_.size()) look_at(by_count_[path.count]);
  look_at(open_ended_);
  if (!best) return match;
  for (size_t i = 0; i < best->segments.size(); ++i) {
    if (!best->segments[i].parameter) continue;
    auto value = percent_decode(path.items[i], Plus::literal);
    if (!value) return {};  // a broken escape names nothing
    match.params.insert_or_assign(best->segments[i].text, std::move(*value));
  }
  if (best->rest)
    match.rest = raw_path.substr(best->segments.empty() ? 0 : path.ends[best->segments.size() - 1]);
  match.handler = &best->handler;
  match.allowed.clear();
  return match;
}

}  // namespace osb::http
