#include "registry/keeper_messages.h"

#include <boost/json.hpp>

#include "json/decode.h"

namespace osb::registry {
namespace {

namespace bj = json::bj;
using json::Field;

constexpr std::string_view kWhat[] = {"pull", "remove", "prune", "push", "commit"};

uint64_t number(const Field& field) {
  return static_cast<uint64_t>(std::max<int64_t>(0, field.integer().value_or(0)));
}

Result<void> check(const json::Issues& issues) {
  if (issues.empty()) return {};
  const json::Issue& issue = issues.list().front();
  return fail(Code::corrupt, json::to_string(issue.path) + ": " + issue.message);
}

bj::array strings(const std::vector<std::string>& list) {
  bj::array out;
  for (const std::string& text : list) out.emplace_back(text);
  return out;
}

bj::object commit_json(const image::CommitOrder& order) {
  const image::ConfigChanges& changes = order.changes;
  bj::array env;
  for (const auto& [name, value] : changes.env) env.push_back(bj::array{name, value});
  bj::object labels;
  for (const auto& [name, value] : changes.labels) labels[name] = value;
  bj::object out{{"snapshot", order.snapshot},
                 {"base", order.base},
                 {"env", std::move(env)},
                 {"labels", std::move(labels)},
                 {"ports", strings(changes.ports)}};
  if (changes.user) out["user"] = *changes.user;
  if (changes.workdir) out["workdir"] = *changes.workdir;
  if (changes.entrypoint) out["entrypoint"] = strings(*changes.entrypoint);
  if (changes.cmd) out["cmd"] = strings(*changes.cmd);
  return out;
}

image::CommitOrder read_commit(const Field& field) {
  image::CommitOrder order;
  order.snapshot = field["snapshot"].required_string();
  order.base = field["base"].string().value_or("");
  image::ConfigChanges& changes = order.changes;
  for (const Field& pair : field["env"].array().value_or(std::vector<Field>())) {
    auto words = pair.string_list().value_or(std::vector<std::string>());
    if (words.size() != 2)
      pair.complain("value_error", "must be a name and a value");
    else
      changes.env.emplace_back(std::move(words[0]), std::move(words[1]));
  }
  changes.labels = field["labels"].string_map().value_or(std::map<std::string, std::string>());
  changes.ports = field["ports"].string_list().value_or(std::vector<std::string>());
  changes.user = field["user"].string();
  changes.workdir = field["workdir"].string();
  changes.entrypoint = field["entrypoint"].string_list();
  changes.cmd = field["cmd"].string_list();
  return order;
}

}  // namespace

std::string encode(const KeeperOrder& order) {
  bj::object out{{"do", kWhat[static_cast<size_t>(order.what)]},
                 {"name", order.name},
                 {"platform", order.platform},
                 {"force", order.force}};
  if (order.what == KeeperOrder::What::push) {
    out["snapshot"] = order.snapshot;
    out["target"] = order.target;
    out["own_logins"] = order.own_logins;
  }
  if (order.login) {
    out["username"] = order.login->username;
    out["password"] = order.login->password;
  }
  if (!order.owner.empty()) out["owner"] = order.owner;
  if (order.commit) out["commit"] = commit_json(*order.commit);
  return json::print(out);
}

Result<KeeperOrder> decode_keeper_order(std::string_view text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = Field::root(value, issues, "order");
  KeeperOrder order;
  std::string what = field["do"].required_string();
  size_t index = 0;
  while (index < std::size(kWhat) && kWhat[index] != what) ++index;
  if (index == std::size(kWhat)) return fail(Code::invalid_argument, "an order for nothing that is known");
  order.what = static_cast<KeeperOrder::What>(index);
  order.name = field["name"].string().value_or("");
  order.platform = field["platform"].string().value_or("");
  order.force = field["force"].boolean().value_or(false);
  order.snapshot = field["snapshot"].string().value_or("");
  order.target = field["target"].string().value_or("");
  order.own_logins = field["own_logins"].boolean().value_or(false);
  if (field["username"].present())
    order.login = Login{field["username"].required_string(), field["password"].required_string()};
  order.owner = field["owner"].string().value_or("");
  if (field["commit"].present()) {
    order.commit = read_commit(field["commit"]);
    order.commit->name = order.name;
    order.commit->owner = order.owner;
  }
  if (order.what == KeeperOrder::What::commit && !order.commit)
    field["commit"].complain("missing", "is required");
  TRY(check(issues));
  return order;
}

std::string encode(const KeeperNews& news) {
  switch (news.kind) {
    case KeeperNews::Kind::progress:
      return json::print(bj::object{{"downloaded", news.downloaded},
                                    {"total", news.total},
                                    {"unpacked", news.unpacked},
                                    {"layers", news.layers}});
    case KeeperNews::Kind::done: {
      bj::array removed;
      for (const std::string& name : news.removed) removed.emplace_back(name);
      return json::print(bj::object{
          {"done", true}, {"id", news.id}, {"removed", std::move(removed)}, {"freed", news.freed}});
    }
    case KeeperNews::Kind::failed:
      break;
  }
  return json::print(bj::object{{"failed", news.error.message},
                                {"code", static_cast<int>(news.error.code)},
                                {"errno", news.error.sys_errno}});
}

Result<KeeperNews> decode_keeper_news(std::string_view text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = Field::root(value, issues, "news");
  KeeperNews news;
  if (field["failed"].present()) {
    news.kind = KeeperNews::Kind::failed;
    uint64_t code = number(field["code"]);
    news.error.code =
        code <= static_cast<uint64_t>(Code::internal) ? static_cast<Code>(code) : Code::internal;
    news.error.sys_errno = static_cast<int>(number(field["errno"]));
    news.error.message = field["failed"].required_string();
  } else if (field["done"].present()) {
    news.kind = KeeperNews::Kind::done;
    news.id = field["id"].string().value_or("");
    news.removed = field["removed"].string_list().value_or(std::vector<std::string>());
    news.freed = number(field["freed"]);
  } else {
    news.downloaded = number(field["downloaded"]);
    news.total = number(field["total"]);
    news.unpacked = number(field["unpacked"]);
    news.layers = number(field["layers"]);
  }
  TRY(check(issues));
  return news;
}

}  // namespace osb::registry
