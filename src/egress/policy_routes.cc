#include "egress/policy_routes.h"

#include "base/log.h"
#include "base/strings.h"
#include "json/escape.h"

namespace osb::egress {
namespace {

using http::Request;
using http::ResponseWriter;
using io::Task;

constexpr size_t kDenialsShown = 20;

struct Reply {
  int status = 200;
  std::string body;  // JSON, or one line when it is a failure
};

Reply failure(int status, std::string line) { return {status, std::move(line)}; }

std::string status_json(const Policy& policy, std::string_view more = "") {
  return "{\"status\":\"ok\",\"mode\":\"" + std::string(mode_of(policy)) + "\"" + std::string(more) + "}\n";
}
constexpr std::string_view kEnforcement = ",\"enforcementMode\":\"dns+nft\"";

// What was refused last, for whoever wonders; clients that do not know the member ignore it.
std::string denials(Attachment& attachment) {
  std::string out = ",\"recentDenials\":[";
  size_t shown = 0;
  const auto& events = attachment.audit().events();
  for (auto event = events.rbegin(); event != events.rend() && shown < kDenialsShown; ++event) {
    if (event->outcome != AuditEvent::Outcome::denied) continue;
    out += (shown++ > 0 ? "," : "") + to_json(*event);
  }
  return out + "]";
}

Reply get(Attachment& attachment) {
  std::string more(kEnforcement);
  more += ",\"policy\":" + to_json(attachment.policy()) + denials(attachment);
  return {200, status_json(attachment.policy(), more)};
}

struct Changing {
  ChangePolicy change;
  size_t most_rules;
};

Reply changed(Attachment& attachment, const Changing& change, Policy policy, std::string_view more) {
  if (policy.rules.size() > change.most_rules) {
    return failure(413, "egress rule total count " + std::to_string(policy.rules.size()) + " exceeds limit " +
                            std::to_string(change.most_rules));
  }
  if (auto done = change.change(std::move(policy)); !done)
    return failure(500, "failed to persist policy: " + done.error().message);
  return {200, status_json(attachment.policy(), more)};
}

Reply put(Attachment& attachment, const Changing& change, std::string_view body) {
  if (trim(body).empty())
    return changed(attachment, change, {}, ",\"reason\":\"policy reset to default deny-all\"");
  auto policy = parse_policy(body);
  if (!policy) return failure(400, "invalid policy: " + policy.error().message);
  return changed(attachment, change, std::move(*policy), kEnforcement);
}

Reply patch(Attachment& attachment, const Changing& change, std::string_view body) {
  if (trim(body).empty()) return failure(400, "empty body");
  auto rules = parse_rules(body);
  if (!rules) return failure(400, "invalid patch rules: " + rules.error().message);
  return changed(attachment, change, merge(attachment.policy(), std::move(*rules)), kEnforcement);
}

Reply remove(Attachment& attachment, const Changing& change, std::string_view body) {
  if (trim(body).empty()) return failure(400, "empty body");
  auto targets = parse_targets(body);
  if (!targets) return failure(400, "invalid delete targets: " + targets.error().message);
  Policy left = without(attachment.policy(), *targets);
  if (left.rules.size() == attachment.policy().rules.size()) {
    std::string more(kEnforcement);
    return {200, status_json(attachment.policy(), more + ",\"reason\":\"no matching targets found\"")};
  }
  return changed(attachment, change, std::move(left), kEnforcement);
}

Task<> send(ResponseWriter& response, Reply reply) {
  http::Headers headers;
  bool failed = reply.status >= 400;
  headers.add("Content-Type", failed ? "text/plain; charset=utf-8" : "application/json");
  if (failed) headers.add("X-Content-Type-Options", "nosniff");
  if (failed) reply.body += "\n";
  (void)co_await response.send(reply.status, std::move(headers), std::move(reply.body));
}

Task<> not_allowed(ResponseWriter& response, std::string allowed) {
  http::Headers headers;
  headers.add("Allow", std::move(allowed));
  headers.add("Content-Type", "text/plain; charset=utf-8");
  headers.add("X-Content-Type-Options", "nosniff");
  (void)co_await response.send(405, std::move(headers), "method not allowed\n");
}

Task<> policy_route(Attachment& attachment, Changing change, Request& request, ResponseWriter& response) {
  const std::string method(request.head.method);
  if (method == "GET") co_return co_await send(response, get(attachment));
  if (method != "POST" && method != "PUT" && method != "PATCH" && method != "DELETE")
    co_return co_await not_allowed(response, "GET, POST, PUT, PATCH, DELETE");
  auto body = co_await http::read_all(*request.body, kMostPolicyBytes);
  if (!body) {
    int status = body.error().code == Code::too_large ? 413 : 400;
    co_return co_await send(response, failure(status, "failed to read body: " + body.error().message));
  }
  Reply reply = method == "PATCH"    ? patch(attachment, change, *body)
                : method == "DELETE" ? remove(attachment, change, *body)
                                     : put(attachment, change, *body);
  if (reply.status >= 400)
    log::warn("egress policy update failed", {{"id", attachment.id()}, {"error", reply.body}});
  co_await send(response, std::move(reply));
}

// The events after a number, a line of JSON each; with ?follow=true also those that come.
Task<> log_route(Attachment& attachment, Request& request, ResponseWriter& response) {
  if (request.head.method != "GET") co_return co_await not_allowed(response, "GET");
  http::Query query(request.head.query());
  uint64_t after = parse_number<uint64_t>(query.get("after").value_or("0")).value_or(0);
  bool follow = query.get("follow").value_or("") == "true";
  http::Headers headers;
  headers.add("Content-Type", "application/x-ndjson");
  if (!co_await response.start(200, std::move(headers), std::nullopt)) co_return;
  while (true) {
    std::string lines;
    for (const AuditEvent& event : attachment.audit().events()) {
      if (event.number > after) lines += to_json(event) + "\n";
    }
    after = std::max(after, attachment.audit().last());
    if (!co_await response.write(lines)) co_return;
    if (!follow) break;
    int first = co_await io::race(attachment.audit().wait_after(after), response.wait_closed());
    if (first == 1) co_return;
  }
  (void)co_await response.finish();
}

Task<> route(Attachment& attachment, Changing change, Request& request, ResponseWriter& response) {
  std::string_view path = request.head.path();
  if (path == "/healthz") {
    http::Headers headers;
    headers.add("Content-Type", "text/plain; charset=utf-8");
    (void)co_await response.send(200, std::move(headers), "ok");
  } else if (path == "/policy") {
    co_await policy_route(attachment, std::move(change), request, response);
  } else if (path == "/log") {
    co_await log_route(attachment, request, response);
  } else if (path == "/credential-vault" || path.starts_with("/credential-vault/")) {
    co_await send(response,
                  failure(412,
                          "credential vault requires transparent mitmproxy: this server does not have "
                          "this part yet"));
  } else {
    co_await send(response, failure(404, "404 page not found"));
  }
}

}  // namespace

http::Handler policy_routes(Attachment& attachment, ChangePolicy change, size_t most_rules) {
  return [&attachment, change = Changing{std::move(change), most_rules}](Request& request,
                                                                         ResponseWriter& response) {
    return route(attachment, change, request, response);
  };
}

}  // namespace osb::egress
