// Two owners in one store: whatever either does, no route, list, filter, event or cache shows or changes
// another's sandbox.

#include <random>
#include <set>

#include "server/test_server.h"

namespace osb::server {
namespace {

// What one owner should see, and nothing else.
struct Tenant {
  std::string name, key;
  std::map<std::string, std::string> living = {};  // ids, and the value of their label
  std::vector<std::string> gone = {};
};

class Owners {
 public:
  explicit Owners(unsigned seed)
      : random_(seed), server_("[server]\napi_key = \"key-of-one\"\n", {}, {{"two", "key-of-two"}}) {}

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      if (step % 50 == 49) restart(step % 100 == 99);
      Tenant& who = tenants_[pick(2)];
      if (who.living.size() < 3) {
        create(who);
        continue;
      }
      Tenant& whose = tenants_[pick(2)];
      if (&who == &whose) {
        use_own(who);
      } else {
        try_anothers(who, whose);
      }
      look(who);
    }
    for (Tenant& tenant : tenants_) look(tenant);
  }

 private:
  int pick(size_t below) { return static_cast<int>(random_() % below); }

  Reply call(const Tenant& who, std::string method, std::string target, std::string body = "") {
    return server_.call(std::move(method), std::move(target), std::move(body),
                        {{"OPEN-SANDBOX-API-KEY", who.key}});
  }
  std::string path(const std::string& id, std::string_view rest = "") {
    return "/v1/sandboxes/" + id + std::string(rest);
  }
  std::string one_of(const Tenant& whose) {
    auto chosen = whose.living.begin();
    std::advance(chosen, pick(whose.living.size()));
    return chosen->first;
  }

  void create(Tenant& who) {
    // Both use the same labels, so that a filter of one could match the other's.
    std::string label = pick(2) ? "red" : "blue";
    std::string body =
        R"({"image":{"uri":"host"},"entrypoint":["sleep","9"],"resourceLimits":{},"timeout":600,)"
        R"("metadata":{"colour":")" +
        label + "\"}}";
    Reply reply = call(who, "POST", "/v1/sandboxes", body);
    ASSERT_EQ(reply.status, 202) << reply.body;
    who.living[reply.text("id")] = label;
  }

  void use_own(Tenant& who) {
    std::string id = one_of(who);
    switch (pick(7)) {
      case 0:
        EXPECT_EQ(call(who, "DELETE", path(id)).status, 204);
        who.living.erase(id);
        who.gone.push_back(id);
        return;
      case 1:
        EXPECT_EQ(call(who, "POST", path(id, "/pause")).status, 202);
        EXPECT_EQ(call(who, "POST", path(id, "/resume")).status, 202);
        return;
      case 2: {
        std::string label = pick(2) ? "red" : "blue";
        EXPECT_EQ(call(who, "PATCH", path(id, "/metadata"), R"({"colour":")" + label + "\"}").status, 200);
        who.living[id] = label;
        return;
      }
      case 3:
        EXPECT_EQ(call(who, "POST", path(id, "/renew-expiration"), R"({"expiresAt":"2090-01-02T03:04:05Z"})")
                      .status,
                  200);
        return;
      case 4: {
        Reply endpoint = call(who, "GET", path(id, "/endpoints/8000"));
        ASSERT_EQ(endpoint.status, 200) << endpoint.body;
        // The token lets anybody in, for whom it was given away.
        std::string url = endpoint.text("endpoint");
        EXPECT_EQ(server_.call("GET", url.substr(url.find('/')) + "/x").status, 200);
        return;
      }
      case 5:
        EXPECT_EQ(call(who, "GET", path(id, "/proxy/8000/x")).status, 200);
        EXPECT_EQ(call(who, "GET", path(id, "/diagnostics/events")).status, 200);
        return;
      default:
        EXPECT_EQ(call(who, "GET", path(id)).status, 200);
    }
  }

  // Every route that names a sandbox.
  void try_anothers(const Tenant& who, const Tenant& whose) {
    struct Attempt {
      const char *method, *rest, *body;
    };
    constexpr Attempt kAttempts[] = {
        {"GET", "", ""},
        {"DELETE", "", ""},
        {"PATCH", "/metadata", R"({"colour":"black"})"},
        {"PATCH", "/metadata", "{}"},
        {"POST", "/renew-expiration", R"({"expiresAt":"2091-01-02T03:04:05Z"})"},
        {"POST", "/pause", ""},
        {"POST", "/resume", ""},
        {"GET", "/wait?state=Running", ""},
        {"POST", "/stop", ""},
        {"POST", "/contexts", R"({"language":"python"})"},
        {"POST", "/snapshots", ""},
        {"GET", "/diff", ""},
        {"POST", "/fork", R"({"count":2})"},
        {"POST", "/rollback", R"({"snapshotId":"x"})"},
        {"GET", "/endpoints/44772", ""},
        {"GET", "/endpoints/8000?use_server_proxy=true", ""},
        {"GET", "/networkpolicy", ""},
        {"GET", "/diagnostics/logs", ""},
        {"GET", "/diagnostics/logs?scope=all", ""},
        {"GET", "/diagnostics/events", ""},
        {"GET", "/diagnostics/events?scope=runtime", ""},
        {"GET", "/diagnostics/inspect", ""},
        {"GET", "/diagnostics/summary", ""},
        {"GET", "/proxy/8000/x", ""},
        {"POST", "/proxy/44772/command", "{}"},
    };
    const size_t kCommit = std::size(kAttempts);  // which has the id in its body
    bool use_gone = !whose.gone.empty() && pick(4) == 0;
    std::string id = use_gone ? whose.gone[pick(whose.gone.size())] : one_of(whose);
    std::string before = call(whose, "GET", path(id)).body;
    auto chosen = static_cast<size_t>(pick(kCommit + 1));
    const Attempt& attempt = chosen == kCommit ? Attempt{"POST", "(commit)", ""} : kAttempts[chosen];
    Reply reply = chosen == kCommit
                      ? call(who, "POST", "/v1/images/commit", R"({"name":"x","sandboxId":")" + id + "\"}")
                      : call(who, attempt.method, path(id, attempt.rest), attempt.body);
    EXPECT_EQ(reply.status, 404) << attempt.method << " " << attempt.rest << ": " << reply.body;
    EXPECT_EQ(reply.code(), "SANDBOX::NOT_FOUND");
    EXPECT_EQ(reply.body.find("colour"), std::string::npos) << reply.body;
    if (!use_gone)
      EXPECT_EQ(call(whose, "GET", path(id)).body, before) << attempt.method << " " << attempt.rest;
  }

  // Lists, with and without filters, twice each: the second may come out of the cache.
  void look(const Tenant& who) {
    const std::string filters[] = {"", "?metadata=colour%3Dred", "?state=Running", "?pageSize=2&page=2",
                                   "?metadata=colour%3Dblue&state=running&pageSize=200"};
    const std::string& filter = filters[pick(std::size(filters))];
    bool paged = filter.starts_with("?pageSize");
    std::set<std::string> expected;
    for (const auto& [id, label] : who.living) {
      bool matches = filter.find("colour") == filter.npos || filter.find(label) != filter.npos;
      if (matches) expected.insert(id);
    }
    for (int round = 0; round < 2; ++round) {
      Reply reply = call(who, "GET", "/v1/sandboxes" + filter);
      ASSERT_EQ(reply.status, 200) << reply.body;
      auto value = reply.json();
      std::set<std::string> shown;
      for (const auto& item : value.at("items").as_array()) shown.emplace(item.at("id").as_string());
      if (!paged) EXPECT_EQ(shown, expected) << who.name << " " << filter;
      for (const std::string& id : shown) EXPECT_TRUE(who.living.contains(id)) << id;
      EXPECT_EQ(value.at("pagination").at("totalItems").to_number<size_t>(), expected.size());
      EXPECT_EQ(call(tenants_[&who == &tenants_[0] ? 1 : 0], "GET", "/v1/sandboxes" + filter).status, 200);
    }
    for (const std::string& id : who.gone) {
      std::string events = call(who, "GET", path(id, "/diagnostics/events")).body;
      EXPECT_NE(events.find("Deleted"), std::string::npos) << "they stay for their owner: " << events;
    }
  }

  void restart(bool lose_database) {
    server_.stop();
    if (lose_database) server_.lose_database();
    server_.start();
    if (!lose_database) return;
    for (Tenant& tenant : tenants_) tenant.gone.clear();  // the events went with it
  }

  std::mt19937 random_;
  TestServer server_;
  Tenant tenants_[2] = {{"one", "key-of-one"}, {"two", "key-of-two"}};
};

TEST(OwnersTest, NeitherSeesNorChangesWhatIsTheOthers) {
  for (unsigned seed : {1u, 2u, 3u}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Owners(seed).run(250);
  }
}

TEST(OwnersTest, AKeyThatIsNobodysOpensNothing) {
  TestServer server("[server]\napi_key = \"key-of-one\"\n", {},
                    {{"two", "key-of-two"}, {"", "stray"}, {"three", ""}});
  for (const char* key : {"", "stray", "key-of", "default"}) {
    Reply reply = server.call("GET", "/v1/sandboxes", "", {{"OPEN-SANDBOX-API-KEY", key}});
    EXPECT_EQ(reply.status, 401) << key;
  }
}

}  // namespace
}  // namespace osb::server
