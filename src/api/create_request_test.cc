#include "api/create_request.h"

#include <gmock/gmock.h>

#include "api/create_rules.h"
#include "json/decode.h"

namespace osb::api {
namespace {

using testing::HasSubstr;

constexpr const char* kJson = "application/json";
const WallTime kNow = *parse_time("2026-01-02T03:04:05Z");

CreateRules rules() { return {.max_timeout_seconds = std::nullopt, .arch = "amd64", .now = kNow}; }

ApiResult<sandbox::CreateRequest> decode(std::string_view body, CreateRules with = rules()) {
  return check_create(TRY(decode_create(kJson, body)), with);
}

// The smallest valid body with `extra` members added.
std::string body_with(std::string_view extra) {
  return R"({"image":{"uri":"host"},"entrypoint":["sleep","9"],"resourceLimits":{})" + std::string(extra) +
         "}";
}

TEST(CreateRequest, TheDocumentedExample) {
  auto plan = decode(R"({"image":{"uri":"host"},"entrypoint":["tail","-f","/dev/null"],"timeout":600,
    "resourceLimits":{"cpu":"1","memory":"2Gi"},"metadata":{"team":"t1"},"env":{"B":"2","A":"1"}})");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->image, "host");
  EXPECT_EQ(plan->entrypoint, (std::vector<std::string>{"tail", "-f", "/dev/null"}));
  EXPECT_EQ(plan->limits.cpu_millis, 1000);
  EXPECT_EQ(plan->limits.memory_bytes, 2LL << 30);
  EXPECT_EQ(plan->metadata, (sandbox::Metadata{{"team", "t1"}}));
  EXPECT_EQ(plan->env, (std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"B", "2"}}));
  EXPECT_EQ(plan->timeout, seconds(600));
  EXPECT_EQ(plan->platform, "");
}

TEST(CreateRequest, ExplicitNullsAreAbsent) {
  auto plan = decode(R"({"image":{"uri":"host","auth":null},"snapshotId":null,"platform":null,"timeout":null,
    "resourceLimits":{},"resourceRequests":null,"env":null,"metadata":null,"entrypoint":["a"],"networkPolicy":null,
    "credentialProxy":null,"volumes":null,"lifecycle":null,"templateId":null,"extensions":null})");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_FALSE(plan->timeout);
  EXPECT_FALSE(plan->metadata);
}

TEST(CreateRequest, AcceptedForms) {
  const std::string accepted[] = {
      body_with(""),
      body_with(R"(,"unknown":{"anything":[1]})"),
      body_with(R"(,"timeout":60)"),
      body_with(R"(,"timeout":"300")"),
      body_with(R"(,"timeout":300.0)"),
      body_with(R"(,"env":{"A":null,"B":""})"),
      body_with(R"(,"env":{})"),
      body_with(R"(,"secureAccess":false)"),
      body_with(R"(,"secureAccess":"no")"),
      body_with(R"(,"credentialProxy":{})"),
      body_with(R"(,"credentialProxy":{"enabled":false})"),
      body_with(R"(,"volumes":[])"),
      body_with(R"(,"extensions":{"poolRef":"  "})"),
      body_with(R"(,"extensions":{"something.else":"x"})"),
      body_with(R"(,"extensions":{"bootstrap.execd.isolation":"enable"})"),
      body_with(R"(,"snapshotId":" ")"),
      body_with(R"(,"templateId":" ")"),
      body_with(R"(,"resourceRequests":{"cpu":"1"})"),
      body_with(R"(,"platform":{"os":" Linux ","arch":"AMD64"})"),
      body_with(R"(,"env":{"OPENSANDBOX_EGRESS_LOG_LEVEL":"debug"})"),
      R"({"image":{"uri":"host","auth":{"username":"u","password":"p"}},"entrypoint":["a"],"resource_limits":{}})",
  };
  for (const std::string& body : accepted) {
    auto plan = decode(body);
    EXPECT_TRUE(plan) << body << "\n" << plan.error().message;
  }
}

TEST(CreateRequest, NullEnvironmentEntriesAreDropped) {
  auto plan = decode(body_with(R"(,"env":{"A":null,"B":"","OPENSANDBOX_EGRESS_LOG_LEVEL":"x",
                                  "OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT":"1"})"));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->env, (std::vector<std::pair<std::string, std::string>>{
                           {"B", ""}, {"OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT", "1"}}));
}

TEST(CreateRequest, GivesBackOnlyTheExtensionsOfThatPrefix) {
  auto plan = decode(body_with(R"(,"extensions":{"opensandbox.extensions.a":"1","other":"2"})"));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->extensions, (std::map<std::string, std::string>{{"opensandbox.extensions.a", "1"}}));
}

struct Rejection {
  std::string body;
  std::string type;  // of the first entry of detail
  std::string loc;   // as JSON
};

std::string image(std::string_view members) {
  return R"({"entrypoint":["a"],"resourceLimits":{},"image":)" + std::string(members) + "}";
}
std::string hooks(std::string_view hooks) { return body_with(",\"lifecycle\":" + std::string(hooks)); }
std::string volume(std::string_view members) {
  return body_with(R"(,"volumes":[{"name":"v","mountPath":"/m",)" + std::string(members) + "}]");
}

TEST(CreateRequest, SchemaMistakesAre422WithTheirPlace) {
  const Rejection refused[] = {
      {"[]", "model_attributes_type", R"(["body"])"},
      {"null", "model_attributes_type", R"(["body"])"},
      {"\"x\"", "model_attributes_type", R"(["body"])"},
      {"{}", "value_error", R"(["body"])"},
      {R"({"image":)", "json_invalid", R"(["body",9])"},
      {"", "missing", R"(["body"])"},
      // single fields
      {body_with(R"(,"timeout":59)"), "greater_than_equal", R"(["body","timeout"])"},
      {body_with(R"(,"timeout":-1)"), "greater_than_equal", R"(["body","timeout"])"},
      {body_with(R"(,"timeout":"soon")"), "int_parsing", R"(["body","timeout"])"},
      {body_with(R"(,"timeout":60.5)"), "int_from_float", R"(["body","timeout"])"},
      {body_with(R"(,"timeout":true)"), "int_type", R"(["body","timeout"])"},
      {body_with(R"(,"timeout":1e300)"), "int_parsing_size", R"(["body","timeout"])"},
      {image("{}"), "missing", R"(["body","image","uri"])"},
      {image(R"("host")"), "model_attributes_type", R"(["body","image"])"},
      {image(R"({"uri":7})"), "string_type", R"(["body","image","uri"])"},
      {image(R"({"uri":"a\u0000b"})"), "value_error", R"(["body","image","uri"])"},
      {image(R"({"uri":"h","auth":{"username":"u"}})"), "missing", R"(["body","image","auth","password"])"},
      {R"({"image":{"uri":"h"},"entrypoint":[],"resourceLimits":{}})", "too_short",
       R"(["body","entrypoint"])"},
      {R"({"image":{"uri":"h"},"entrypoint":"a","resourceLimits":{}})", "list_type",
       R"(["body","entrypoint"])"},
      {R"({"image":{"uri":"h"},"entrypoint":[1],"resourceLimits":{}})", "string_type",
       R"(["body","entrypoint",0])"},
      {R"({"image":{"uri":"h"},"entrypoint":["a",null],"resourceLimits":{}})", "string_type",
       R"(["body","entrypoint",1])"},
      {R"({"image":{"uri":"h"},"entrypoint":["a\u0000"],"resourceLimits":{}})", "value_error",
       R"(["body","entrypoint"])"},
      {R"({"image":{"uri":"h"},"entrypoint":["sh -c 'a"],"resourceLimits":{}})", "value_error",
       R"(["body","entrypoint"])"},
      {R"({"image":{"uri":"h"},"entrypoint":[" "],"resourceLimits":{}})", "value_error",
       R"(["body","entrypoint"])"},
      {R"({"image":{"uri":"h"},"entrypoint":["a"],"resourceLimits":{"cpu":1}})", "string_type",
       R"(["body","resourceLimits","cpu"])"},
      {R"({"image":{"uri":"h"},"entrypoint":["a"],"resourceLimits":{"cpu":null}})", "string_type",
       R"(["body","resourceLimits","cpu"])"},
      {R"({"image":{"uri":"h"},"entrypoint":["a"],"resourceLimits":[]})", "dict_type",
       R"(["body","resourceLimits"])"},
      {body_with(R"(,"resourceRequests":{"cpu":1})"), "string_type", R"(["body","resourceRequests","cpu"])"},
      {body_with(R"(,"env":[])"), "dict_type", R"(["body","env"])"},
      {body_with(R"(,"env":{"A":1})"), "string_type", R"(["body","env","A"])"},
      {body_with(R"(,"env":{"A":"x\u0000"})"), "value_error", R"(["body","env","A"])"},
      {body_with(R"(,"metadata":{"a":1})"), "string_type", R"(["body","metadata","a"])"},
      {body_with(R"(,"metadata":{"a":null})"), "string_type", R"(["body","metadata","a"])"},
      {body_with(R"(,"metadata":"a=b")"), "dict_type", R"(["body","metadata"])"},
      {body_with(R"(,"extensions":{"a":null})"), "string_type", R"(["body","extensions","a"])"},
      {body_with(R"(,"platform":{"os":"linux"})"), "missing", R"(["body","platform","arch"])"},
      {body_with(R"(,"platform":"linux/amd64")"), "model_attributes_type", R"(["body","platform"])"},
      {body_with(R"(,"secureAccess":"maybe")"), "bool_parsing", R"(["body","secureAccess"])"},
      {body_with(R"(,"secureAccess":null)"), "bool_type", R"(["body","secureAccess"])"},
      {body_with(R"(,"secure_access":null)"), "bool_type", R"(["body","secureAccess"])"},
      {body_with(R"(,"networkPolicy":{"egress":null})"), "list_type", R"(["body","networkPolicy","egress"])"},
      {body_with(R"(,"networkPolicy":{},"credentialProxy":{"enabled":null})"), "bool_type",
       R"(["body","credentialProxy","enabled"])"},
      {body_with(R"(,"volumes":[{"name":"v","mountPath":"/v","host":{"path":"/x"},"readOnly":null}])"),
       "bool_type", R"(["body","volumes",0,"readOnly"])"},
      {body_with(
           R"(,"volumes":[{"name":"v","mountPath":"/v","pvc":{"claimName":"c","create_if_not_exists":null}}])"),
       "bool_type", R"(["body","volumes",0,"pvc","createIfNotExists"])"},
      {body_with(R"(,"credentialProxy":{"enabled":2})"), "bool_parsing",
       R"(["body","credentialProxy","enabled"])"},
      {body_with(R"(,"networkPolicy":{"egress":[{"action":"allow"}]})"), "missing",
       R"(["body","networkPolicy","egress",0,"target"])"},
      {body_with(R"(,"networkPolicy":{"egress":[{"action":"allow","target":""}]})"), "string_too_short",
       R"(["body","networkPolicy","egress",0,"target"])"},
      {body_with(R"(,"networkPolicy":{"egress":{}})"), "list_type", R"(["body","networkPolicy","egress"])"},
      {body_with(R"(,"networkPolicy":[])"), "model_attributes_type", R"(["body","networkPolicy"])"},
      {body_with(R"(,"snapshotId":5)"), "string_type", R"(["body","snapshotId"])"},
      {body_with(R"(,"templateId":"")"), "string_too_short", R"(["body","templateId"])"},
      // volumes
      {body_with(R"(,"volumes":{})"), "list_type", R"(["body","volumes"])"},
      {body_with(R"(,"volumes":[null])"), "model_attributes_type", R"(["body","volumes",0])"},
      {body_with(R"(,"volumes":[{"mountPath":"/m","host":{"path":"/h"}}])"), "missing",
       R"(["body","volumes",0,"name"])"},
      {body_with(R"(,"volumes":[{"name":"A","mountPath":"/m","host":{"path":"/h"}}])"),
       "string_pattern_mismatch", R"(["body","volumes",0,"name"])"},
      {body_with(R"(,"volumes":[{"name":"v","mountPath":"m","host":{"path":"/h"}}])"),
       "string_pattern_mismatch", R"(["body","volumes",0,"mountPath"])"},
      {volume(R"("host":{"path":"relative"})"), "string_pattern_mismatch",
       R"(["body","volumes",0,"host","path"])"},
      {volume(R"("pvc":{"claimName":"Bad_Name"})"), "string_pattern_mismatch",
       R"(["body","volumes",0,"pvc","claimName"])"},
      {volume(R"("pvc":{})"), "missing", R"(["body","volumes",0,"pvc","claimName"])"},
      {volume(R"("pvc":{"claimName":"c","storage":"big"})"), "string_pattern_mismatch",
       R"(["body","volumes",0,"pvc","storage"])"},
      {volume(R"("ossfs":{"bucket":"ab","endpoint":"e","accessKeyId":"i","accessKeySecret":"s"})"),
       "string_too_short", R"(["body","volumes",0,"ossfs","bucket"])"},
      {volume(
           R"("ossfs":{"bucket":"abc","endpoint":"e","accessKeyId":"i","accessKeySecret":"s","version":"3"})"),
       "literal_error", R"(["body","volumes",0,"ossfs","version"])"},
      {volume(R"("readOnly":false)"), "value_error", R"(["body","volumes",0])"},
      {volume(R"("host":{"path":"/h"},"pvc":{"claimName":"c"})"), "value_error", R"(["body","volumes",0])"},
      // hooks
      {hooks(R"({"postStop":{}})"), "extra_forbidden", R"(["body","lifecycle","postStop"])"},
      {hooks(R"({"preStart":{}})"), "missing", R"(["body","lifecycle","preStart","command"])"},
      {hooks(R"({"preStart":{"command":[]}})"), "too_short", R"(["body","lifecycle","preStart","command"])"},
      {hooks(R"({"preStart":{"command":[" "]}})"), "value_error",
       R"(["body","lifecycle","preStart","command"])"},
      {hooks(R"({"preStart":{"command":["a"],"timeoutSeconds":0}})"), "greater_than_equal",
       R"(["body","lifecycle","preStart","timeoutSeconds"])"},
      {hooks(R"({"preStart":{"command":["a"],"timeoutSeconds":10801}})"), "less_than_equal",
       R"(["body","lifecycle","preStart","timeoutSeconds"])"},
      {hooks(R"({"preStart":{"command":["a"],"x":1}})"), "extra_forbidden",
       R"(["body","lifecycle","preStart","x"])"},
      {hooks(R"({"periodic":[{"name":"n","schedule":"* * * * *","command":["a"],"timeoutSeconds":301}]})"),
       "less_than_equal", R"(["body","lifecycle","periodic",0,"timeoutSeconds"])"},
      {hooks(R"({"periodic":[{"name":" ","schedule":"s","command":["a"]}]})"), "value_error",
       R"(["body","lifecycle","periodic",0,"name"])"},
      {hooks(
           R"({"periodic":[{"name":"n","schedule":"s","command":["a"]},{"name":" n ","schedule":"s","command":["a"]}]})"),
       "value_error", R"(["body","lifecycle","periodic",1])"},
      // between fields, in the contract's order
      {body_with(R"(,"env":{"OPENSANDBOX_LIFECYCLE":"x"},"templateId":"t")"), "value_error", R"(["body"])"},
      {body_with(R"(,"templateId":"t")"), "value_error", R"(["body"])"},
      {R"({"templateId":"t"})", "value_error", R"(["body"])"},
      {R"({"templateId":"t","timeout":60,"env":{}})", "value_error", R"(["body"])"},
      {R"({"templateId":"t","timeout":60,"secureAccess":true})", "value_error", R"(["body"])"},
      {body_with(R"(,"extensions":{"poolRef":"p"},"lifecycle":{})"), "value_error", R"(["body"])"},
      {body_with(R"(,"extensions":{"poolRef":"p"},"snapshotId":"s")"), "value_error", R"(["body"])"},
      {body_with(R"(,"credentialProxy":{"enabled":true})"), "value_error", R"(["body"])"},
      {body_with(R"(,"snapshotId":"s")"), "value_error", R"(["body"])"},
      {R"({"entrypoint":["a"],"resourceLimits":{}})", "value_error", R"(["body"])"},
      {R"({"image":{"uri":" "},"entrypoint":["a"],"resourceLimits":{}})", "value_error", R"(["body"])"},
      {R"({"image":{"uri":"h"},"resourceLimits":{}})", "value_error", R"(["body"])"},
      {R"({"image":{"uri":"h"},"entrypoint":["a"]})", "value_error", R"(["body"])"},
      {R"({"image":{"uri":"h"},"entrypoint":["a"],"resourceLimits":null})", "value_error", R"(["body"])"},
  };
  for (const Rejection& r : refused) {
    auto result = decode_create(kJson, r.body);
    ASSERT_FALSE(result) << r.body;
    EXPECT_EQ(result.error().status, 422) << r.body;
    EXPECT_EQ(result.error().code, "SANDBOX::INVALID_REQUEST");
    EXPECT_FALSE(result.error().message.empty());
    auto detail = json::parse(result.error().detail);
    ASSERT_TRUE(detail && detail->is_array() && !detail->get_array().empty()) << result.error().detail;
    const auto& first = detail->get_array()[0].as_object();
    EXPECT_EQ(first.at("type").as_string(), r.type) << r.body;
    EXPECT_EQ(json::print(first.at("loc")), r.loc) << r.body;
    EXPECT_FALSE(first.contains("input")) << "the request may hold secrets";
  }
}

TEST(CreateRequest, CollectsAllFieldMistakes) {
  auto result = decode_create(kJson, R"({"image":{"uri":1},"timeout":5,"entrypoint":[]})");
  ASSERT_FALSE(result);
  EXPECT_EQ(json::parse(result.error().detail)->get_array().size(), 3u);
  EXPECT_THAT(result.error().message, HasSubstr("body.timeout: must be at least 60"));
}

TEST(CreateRequest, NeverEchoesSecrets) {
  auto result = decode_create(kJson, R"({"image":{"uri":1,"auth":{"username":"u","password":"hunter2"}},
    "env":{"TOKEN":"hunter2","X":5}})");
  ASSERT_FALSE(result);
  EXPECT_EQ(to_json(result.error(), "id").find("hunter2"), std::string::npos);
}

TEST(CreateRequest, NeedsAJsonMediaType) {
  for (const char* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json", "+json"}) {
    auto result = decode_create(type, body_with(""));
    ASSERT_FALSE(result) << type;
    EXPECT_EQ(result.error().status, 422);
    EXPECT_THAT(result.error().remedy, HasSubstr("application/json"));
  }
  for (const char* type :
       {"application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json", "text/json"}) {
    EXPECT_TRUE(decode_create(type, body_with(""))) << type;
  }
}

struct Refusal {
  std::string extra, code, names;
};

TEST(CreateRules, WhatThisServerCannotDoIs400AndNamed) {
  const Refusal refused[] = {
      {R"(,"extensions":{"access.renew.extend.seconds":"299"})", "SANDBOX::INVALID_PARAMETER",
       "access.renew.extend.seconds"},
      {R"(,"extensions":{"access.renew.extend.seconds":"86401"})", "SANDBOX::INVALID_PARAMETER",
       "extend.seconds"},
      {R"(,"extensions":{"access.renew.extend.seconds":"5m"})", "SANDBOX::INVALID_PARAMETER",
       "extend.seconds"},
      {R"(,"extensions":{"access.renew.extend.seconds":""})", "SANDBOX::INVALID_PARAMETER", "extend.seconds"},
      {R"(,"extensions":{"access.renew.extend.seconds":" 300 "})", "SANDBOX::UNSUPPORTED",
       "extensions.access.renew.extend.seconds"},
      {R"(,"extensions":{"access.pause.idle.seconds":"0"})", "SANDBOX::INVALID_PARAMETER",
       "extensions.access.pause.idle.seconds"},
      {R"(,"extensions":{"access.pause.idle.seconds":"86401"})", "SANDBOX::INVALID_PARAMETER",
       "idle.seconds"},
      {R"(,"extensions":{"access.pause.idle.seconds":"a while"})", "SANDBOX::INVALID_PARAMETER",
       "idle.seconds"},
      {R"(,"extensions":{"access.pause.idle.seconds":"60"})", "SANDBOX::UNSUPPORTED",
       "extensions.access.pause.idle.seconds"},
      {R"(,"extensions":{"opensandbox.extensions.read-only-root":"yes"})", "SANDBOX::INVALID_PARAMETER",
       "extensions.opensandbox.extensions.read-only-root"},
      {R"(,"extensions":{"poolRef":" p "},"networkPolicy":{})", "SANDBOX::INVALID_PARAMETER",
       "networkPolicy"},
      {R"(,"extensions":{"poolRef":"p"},"platform":{"os":"linux","arch":"amd64"})",
       "SANDBOX::INVALID_PARAMETER", "platform"},
      {R"(,"extensions":{"poolRef":"p"},"volumes":[{"name":"v","mountPath":"/v","pvc":{"claimName":"v"}}])",
       "SANDBOX::INVALID_PARAMETER", "volumes"},
      {R"(,"extensions":{"poolRef":"p","opensandbox.extensions.read-only-root":"true"})",
       "SANDBOX::INVALID_PARAMETER", "read-only-root"},
      {R"(,"extensions":{"poolRef":"p","opensandbox.extensions.shm-size":"64Mi"})",
       "SANDBOX::INVALID_PARAMETER", "shm-size"},
      {R"(,"lifecycle":{"periodic":[{"name":"n","schedule":"often","command":["a"]}]})",
       "SANDBOX::INVALID_PARAMETER", "lifecycle.periodic[0].schedule"},
      {R"(,"metadata":{"opensandbox.io/x":"1"})", "SANDBOX::INVALID_METADATA_LABEL", "opensandbox.io/x"},
      {R"(,"metadata":{"display name":"1"})", "SANDBOX::INVALID_METADATA_LABEL", "display name"},
      {R"(,"platform":{"os":"plan9","arch":"amd64"})", "SANDBOX::INVALID_PARAMETER", "platform.os"},
      {R"(,"platform":{"os":"linux","arch":"mips"})", "SANDBOX::INVALID_PARAMETER", "platform.arch"},
      {R"(,"platform":{"os":"linux","arch":"arm64"})", "SANDBOX::UNSUPPORTED", "platform"},
      {R"(,"platform":{"os":"windows","arch":"amd64"})", "SANDBOX::UNSUPPORTED", "platform"},
      {R"(,"timeout":9000000000000)", "SANDBOX::INVALID_PARAMETER", "timeout"},
      {R"(,"timeout":9223372036854775807)", "SANDBOX::INVALID_PARAMETER", "timeout"},
      {R"(,"networkPolicy":{})", "SANDBOX::UNSUPPORTED", "networkPolicy"},
      {R"(,"networkPolicy":{"egress":[]},"credentialProxy":{"enabled":true})", "SANDBOX::UNSUPPORTED",
       "networkPolicy"},
      {R"(,"volumes":[{"name":"v","mountPath":"/m","host":{"path":"/h"}}])", "SANDBOX::UNSUPPORTED",
       "volumes"},
      {R"(,"env":{"":"x"})", "SANDBOX::INVALID_PARAMETER", "env"},
      {R"(,"env":{"A=B":"x"})", "SANDBOX::INVALID_PARAMETER", "env"},
      {R"(,"env":{"A\u0000":"x"})", "SANDBOX::INVALID_PARAMETER", "env"},
      {R"(,"env":{"OPENSANDBOX_EGRESS_TOKEN":"x"})", "SANDBOX::INVALID_PARAMETER",
       "OPENSANDBOX_EGRESS_TOKEN"},
  };
  for (const Refusal& r : refused) {
    auto result = decode(body_with(r.extra));
    ASSERT_FALSE(result) << r.extra;
    EXPECT_EQ(result.error().status, 400) << r.extra;
    EXPECT_EQ(result.error().code, r.code) << r.extra;
    EXPECT_THAT(result.error().message, HasSubstr(r.names));
  }
}

TEST(CreateRules, SecureAccessWhereTheRuntimeHasIt) {
  std::string body = body_with(R"(,"secureAccess":true)");
  EXPECT_TRUE(decode(body));
  CreateRules open = rules();
  open.no_secure_access = "its ports are open to everybody";
  auto refused = decode(body, open);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 400);
  EXPECT_NE(refused.error().message.find("its ports are open to everybody"), std::string::npos);
  EXPECT_TRUE(decode(body_with(R"(,"secureAccess":false)"), open));
}

TEST(CreateRules, Snapshots) {
  auto plain = decode(R"({"snapshotId":"s","resourceLimits":{}})");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->snapshot, "s");
  EXPECT_EQ(plain->image, "opensandbox-snapshots:s");
  EXPECT_THAT(plain->entrypoint, testing::ElementsAre("tail", "-f", "/dev/null"));
  EXPECT_FALSE(plain->restore_env);
  auto image = decode(
      R"({"image":{"uri":"opensandbox-snapshots:s"},"entrypoint":["a"],"resourceLimits":{},"extensions":{"restore.env":"true"}})");
  ASSERT_TRUE(image);
  EXPECT_EQ(image->snapshot, "s");
  EXPECT_TRUE(image->restore_env);
  for (const char* extra :
       {R"(,"extensions":{"restore.env":"yes"})", R"(,"extensions":{"restore.env":"true"})"}) {
    auto refused = decode(body_with(extra));
    ASSERT_FALSE(refused) << extra;
    EXPECT_EQ(refused.error().status, 400);
    EXPECT_THAT(refused.error().message, HasSubstr("restore.env"));
  }
}

TEST(CreateRules, SourcesThatAreNotBuilt) {
  auto template_form = decode(R"({"templateId":"t","timeout":60,"metadata":{}})");
  ASSERT_FALSE(template_form);
  EXPECT_EQ(template_form.error().code, "SANDBOX::UNSUPPORTED");
  EXPECT_THAT(template_form.error().message, HasSubstr("templateId"));
}

TEST(CreateRules, TheConfiguredMaximumOfTheTimeout) {
  CreateRules limited = rules();
  limited.max_timeout_seconds = 3600;
  EXPECT_TRUE(decode(body_with(R"(,"timeout":3600)"), limited));
  EXPECT_TRUE(decode(body_with(""), limited)) << "no timeout means: never expires";
  auto result = decode(body_with(R"(,"timeout":3601)"), limited);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, "SANDBOX::INVALID_PARAMETER");
  EXPECT_THAT(result.error().message, HasSubstr("3600"));
}

TEST(CreateRequest, AnEntrypointOfOneElementWithABlankIsACommandLine) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(sandbox::words_of({"tail -f /dev/null"}), (Words{"tail", "-f", "/dev/null"}));
  EXPECT_EQ(sandbox::words_of({"sh -c 'exit 3'"}), (Words{"sh", "-c", "exit 3"}));
  EXPECT_EQ(sandbox::words_of({"it's"}), (Words{"it's"}));
  EXPECT_EQ(sandbox::words_of({"sh", "-c", "exit 3"}), (Words{"sh", "-c", "exit 3"}));
}

}  // namespace
}  // namespace osb::api
