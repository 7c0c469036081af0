#include "api/changes.h"

#include <gtest/gtest.h>

#include "api/list_query.h"
#include "api/sandbox_json.h"
#include "json/decode.h"
#include "sandbox/create_request.h"

namespace osb::api {
namespace {

constexpr const char* kJson = "application/json";

TEST(MetadataPatch, SetsReplacesAndRemoves) {
  auto patch = decode_metadata_patch(kJson, R"({"a":"1","b":null,"gone":null})");
  ASSERT_TRUE(patch) << patch.error().message;
  EXPECT_EQ(*sandbox::apply_patch({{"a", "0"}, {"b", "x"}, {"c", "y"}}, *patch),
            (sandbox::Metadata{{"a", "1"}, {"c", "y"}}));
  EXPECT_EQ(*sandbox::apply_patch({}, {}), sandbox::Metadata{});
}

TEST(MetadataPatch, RefusesBadShapesAndLabels) {
  const std::pair<const char*, int> refused[] = {
      {"[]", 422},
      {"null", 422},
      {R"({"a":1})", 422},
      {R"({"a":{}})", 422},
      {"{", 422},
      {"", 422},
      {R"({"a b":"1"})", 400},
      {R"({"a":"b c"})", 400},
      {R"({"opensandbox.io/x":"1"})", 400},
      {R"({"opensandbox.io/x":null})", 400},
  };
  for (auto [body, status] : refused) {
    auto patch = decode_metadata_patch(kJson, body);
    ASSERT_FALSE(patch) << body;
    EXPECT_EQ(patch.error().status, status) << body;
  }
  EXPECT_EQ(decode_metadata_patch(kJson, R"({"opensandbox.io/x":"1"})").error().code,
            "INVALID_METADATA_LABEL");
  EXPECT_EQ(decode_metadata_patch(kJson, R"({"a b":"1"})").error().code, "SANDBOX::INVALID_METADATA_LABEL");
  EXPECT_TRUE(decode_metadata_patch(kJson, R"({"any old key":null})")) << "a bad key can be removed";
}

TEST(MetadataPatch, CannotGrowPastTheBound) {
  sandbox::Metadata full;
  for (size_t i = 0; i < sandbox::kMaxLabels; ++i) full.emplace("k" + std::to_string(i), "v");
  EXPECT_FALSE(sandbox::apply_patch(full, {{"more", "v"}}));
  EXPECT_TRUE(sandbox::apply_patch(full, {{"more", "v"}, {"k0", std::nullopt}}));
}

TEST(Renewal, TakesTheTimestampsOfAllClients) {
  const std::pair<const char*, const char*> accepted[] = {
      {R"("2026-01-02T03:04:05Z")", "2026-01-02T03:04:05Z"},
      {R"("2026-01-02T03:04:05.678901234Z")", "2026-01-02T03:04:05.678901Z"},
      {R"("2026-01-02T05:04:05.5+02:00")", "2026-01-02T03:04:05.500000Z"},
      {R"("2026-01-02 03:04:05")", "2026-01-02T03:04:05Z"},
      {"1767323045", "2026-01-02T03:04:05Z"},
      {"1767323045000", "2026-01-02T03:04:05Z"},
      {"1767323045.5", "2026-01-02T03:04:05.500000Z"},
  };
  for (auto [text, expected] : accepted) {
    auto time = decode_renewal(kJson, std::string("{\"expiresAt\":") + text + "}");
    ASSERT_TRUE(time) << text << time.error().message;
    EXPECT_EQ(format_api_time(*time), expected);
  }
  EXPECT_TRUE(decode_renewal(kJson, R"({"expires_at":"2026-01-02T03:04:05Z"})"));
}

TEST(Renewal, RefusesTheRest) {
  for (const char* body :
       {"{}", "null", "[]", "5", R"({"expiresAt":null})", R"({"expiresAt":"tomorrow"})",
        R"({"expiresAt":true})", R"({"expiresAt":[]})", R"({"expiresAt":""})", R"({"expiresAt":1e30})",
        R"({"expiresAt":"2026-13-02T03:04:05Z"})", R"({"expiresAt":"2026-01-02"})"}) {
    auto time = decode_renewal(kJson, body);
    ASSERT_FALSE(time) << body;
    EXPECT_EQ(time.error().status, 422);
  }
}

TEST(MetricsEvent, IsCheckedBeforeItIsDropped) {
  EXPECT_TRUE(
      check_metrics_event(kJson, R"({"eventType":"sandbox.create","createDurationMs":5,"success":true})"));
  EXPECT_TRUE(check_metrics_event(
      kJson,
      R"({"eventType":"sandbox.create","createDurationMs":0,"success":false,"sandboxId":null,"image":"x"})"));
  for (const char* body : {"{}", R"({"eventType":"x","createDurationMs":5,"success":true})",
                           R"({"eventType":"sandbox.create","createDurationMs":-1,"success":true})",
                           R"({"eventType":"sandbox.create","createDurationMs":5})",
                           R"({"eventType":"sandbox.create","success":true})", "[]", "null"}) {
    EXPECT_FALSE(check_metrics_event(kJson, body)) << body;
  }
}

TEST(ListQuery, PagesAndFilters) {
  auto query =
      decode_list_query("page=3&pageSize=200&state=running&state=FAILED&state=bogus&metadata=a%3Db%26c%3D");
  ASSERT_TRUE(query) << query.error().message;
  EXPECT_EQ(query->page, 3);
  EXPECT_EQ(query->page_size, 200);
  EXPECT_EQ(query->filter.states, (std::vector{sandbox::State::running, sandbox::State::failed}));
  EXPECT_EQ(query->filter.metadata,
            (std::vector<std::pair<std::string, std::string>>{{"a", "b"}, {"c", ""}}));
  auto nothing = decode_list_query("state=bogus");
  EXPECT_EQ(nothing->filter.states, std::vector<sandbox::State>{}) << "an unknown state matches nothing";
  EXPECT_EQ(decode_list_query("")->page_size, 20);
  EXPECT_TRUE(decode_list_query("metadata=")->filter.metadata.empty());
  // One client encodes keys and values once more; and the last of equal keys wins.
  EXPECT_EQ(decode_list_query("metadata=k%3D1%26k%3Da%252Fb%2Bc")->filter.metadata,
            (std::vector<std::pair<std::string, std::string>>{{"k", "a/b c"}}));
}

TEST(ListQuery, RefusesTheRest) {
  for (const char* raw : {"page=0", "page=-1", "page=x", "page=", "pageSize=0", "pageSize=201",
                          "pageSize=1.5", "page=9223372036854775807"}) {
    auto query = decode_list_query(raw);
    ASSERT_FALSE(query) << raw;
    EXPECT_EQ(query.error().status, 422) << raw;
    EXPECT_NE(query.error().detail.find("\"query\""), std::string::npos);
  }
  for (const char* raw :
       {"metadata=a", "metadata=a%3Db%26", "metadata=a%3Db%26%26c%3Dd", "metadata=%3D%25zz"}) {
    auto query = decode_list_query(raw);
    ASSERT_FALSE(query) << raw;
    EXPECT_EQ(query.error().code, "INVALID_METADATA_FORMAT") << raw;
  }
}

TEST(SandboxJson, LeavesOutWhatHasNoValue) {
  sandbox::Sandbox row;
  row.id = "0198";
  row.image = "a\"b";
  row.status = {sandbox::State::running, sandbox::Reason::running, "", *parse_time("2026-01-02T03:04:05Z")};
  row.created = row.status.changed;
  std::string out;
  append_sandbox(out, row);
  EXPECT_EQ(
      out,
      R"({"id":"0198","image":{"uri":"a\"b"},"status":{"state":"Running","reason":"RUNNING",)"
      R"("lastTransitionAt":"2026-01-02T03:04:05Z"},"entrypoint":[],"createdAt":"2026-01-02T03:04:05Z"})");
  row.metadata = {{"a", "b"}};
  row.platform = "linux/amd64";
  row.extensions = {{"opensandbox.extensions.x", "1"}};
  row.expires = *parse_time("2026-01-02T03:04:05.5Z");
  out.clear();
  append_sandbox(out, row);
  auto value = json::parse(out);
  ASSERT_TRUE(value) << out;
  EXPECT_EQ(value->at("expiresAt").as_string(), "2026-01-02T03:04:05.500000Z");
  EXPECT_EQ(value->at("platform").at("arch").as_string(), "amd64");
  EXPECT_EQ(value->at("metadata").at("a").as_string(), "b");
  EXPECT_TRUE(value->at("extensions").is_object());
}

TEST(SandboxJson, SaysARuntimeThatIsNotTheStandard) {
  sandbox::Sandbox row;
  auto said = [&](std::string_view standard) {
    std::string out;
    append_sandbox(out, row, standard);
    auto value = json::parse(out);
    const auto* extensions = value->as_object().if_contains("extensions");
    return extensions ? json::print(*extensions) : "";
  };
  EXPECT_EQ(said("native"), "") << "a row that says nothing";
  row.runtime = "native";
  EXPECT_EQ(said("native"), "");
  EXPECT_EQ(said("runsc"), R"({"opensandbox.extensions.runtime":"native"})") << "older than the choice";
  row.extensions = {{"opensandbox.extensions.runtime", "native"}, {"x", "1"}};
  EXPECT_EQ(said("runsc"), R"({"opensandbox.extensions.runtime":"native","x":"1"})");
}

TEST(SandboxJson, EchoesEmptyMetadataOnlyInTheCreateAnswer) {
  sandbox::CreateRequest plan;
  plan.image = "host";
  plan.metadata = sandbox::Metadata{};
  plan.env = {{"TOKEN", "hunter2"}};
  sandbox::Sandbox row = sandbox::new_sandbox("id", sandbox::Principal::owner_named("o"), plan, WallTime{});
  EXPECT_NE(created_json(row, true).find("\"metadata\":{}"), std::string::npos);
  EXPECT_EQ(created_json(row, false).find("metadata"), std::string::npos);
  EXPECT_EQ(row.env_names, std::vector<std::string>{"TOKEN"}) << "values are never stored";
}

TEST(SandboxJson, Pagination) {
  std::string out;
  append_pagination(out, {.page = 2, .page_size = 20, .total = 41});
  EXPECT_EQ(out,
            R"("pagination":{"page":2,"pageSize":20,"totalItems":41,"totalPages":3,"hasNextPage":true})");
  out.clear();
  append_pagination(out, {.page = 1, .page_size = 20, .total = 0});
  EXPECT_EQ(out,
            R"("pagination":{"page":1,"pageSize":20,"totalItems":0,"totalPages":0,"hasNextPage":false})");
}

TEST(ErrorJson, HasCodeAndMessageAndNoNulls) {
  EXPECT_EQ(to_json({.status = 404, .code = "X::Y", .message = "gone"}, "r1"),
            R"({"code":"X::Y","message":"gone","requestId":"r1"})");
  EXPECT_EQ(to_json({.code = "C", .message = "m", .cause = "c", .remedy = "r", .detail = "[]"}, ""),
            R"({"code":"C","message":"m; r","cause":"c","remedy":"r","detail":[]})");
}

}  // namespace
}  // namespace osb::api
