#include "api/create_request.h"

#include <fmt/format.h>

#include "api/body.h"
#include "api/error_catalogue.h"
#include "base/hooks_variable.h"
#include "base/shell_words.h"
#include "base/strings.h"
#include "sandbox/create_request.h"

namespace osb::api {
namespace {

using json::Field;

bool has_nul(std::string_view text) { return text.find('\0') != text.npos; }

std::optional<std::string> unless_blank(std::optional<std::string> text) {
  if (text && trim(*text).empty()) return std::nullopt;
  return text;
}

void decode_image(const Field& field, CreateBody& out) {
  if (!field.present()) return;
  Field uri = field["uri"], auth = field["auth"];
  out.image = trim(uri.required_string());
  if (has_nul(out.image)) complain_value(uri, "must not contain NUL");
  if (auth.present()) {
    out.image_auth =
        sandbox::ImageAuth{auth["username"].required_string(), auth["password"].required_string()};
  }
}

void decode_timeout(const Field& field, CreateBody& out) {
  out.timeout_seconds = field.integer();
  if (out.timeout_seconds && *out.timeout_seconds < kMinTimeoutSeconds) {
    field.complain("greater_than_equal", fmt::format("must be at least {} seconds", kMinTimeoutSeconds));
  }
}

// Values are strings or null; null means "not set".
void decode_env(const Field& field, CreateBody& out) {
  auto members = field.object();
  if (!members) return;
  out.has_env = true;
  for (auto& [name, member] : *members) {
    auto value = member.string();
    if (!value) continue;
    if (has_nul(*value)) complain_value(member, "must not contain NUL");
    out.env.emplace_back(name, std::move(*value));
  }
}

// Whoever asks for protection must say so or leave it out.
void decode_secure_access(const Field& body, CreateBody& out) {
  complain_null(body, {"secureAccess", "secure_access"}, "bool_type", "true or false");
  out.secure_access = body.any_of({"secureAccess", "secure_access"}).boolean().value_or(false);
}

void decode_entrypoint(const Field& field, CreateBody& out) {
  out.entrypoint = field.string_list();
  if (!out.entrypoint) return;
  if (out.entrypoint->empty()) field.complain("too_short", "must have at least 1 element");
  for (const std::string& word : *out.entrypoint) {
    if (has_nul(word)) complain_value(field, "must not contain NUL");
  }
  if (!sandbox::is_command_line(*out.entrypoint)) return;
  auto words = shell_words(out.entrypoint->front());
  if (!words) return complain_value(field, words.error().message);
  if (words->empty()) complain_value(field, "must name a program");
}

void decode_platform(const Field& field, CreateBody& out) {
  if (!field.present()) return;
  out.platform = Platform{to_lower(trim(field["os"].required_string())),
                          to_lower(trim(field["arch"].required_string()))};
}

CreateBody decode_fields(const Field& body) {
  CreateBody out;
  decode_image(body["image"], out);
  out.snapshot_id = unless_blank(body.any_of({"snapshotId", "snapshot_id"}).string());
  Field template_id = body.any_of({"templateId", "template_id"});
  out.template_id = template_id.string();
  if (out.template_id && out.template_id->empty()) {
    template_id.complain("string_too_short", "must have at least 1 character");
  }
  out.template_id = unless_blank(std::move(out.template_id));
  decode_platform(body["platform"], out);
  decode_timeout(body["timeout"], out);
  out.resource_limits = body.any_of({"resourceLimits", "resource_limits"}).string_map();
  out.resource_requests = body.any_of({"resourceRequests", "resource_requests"}).string_map();
  decode_env(body["env"], out);
  out.metadata = body["metadata"].string_map();
  decode_entrypoint(body["entrypoint"], out);
  out.network_policy = decode_network_policy(body.any_of({"networkPolicy", "network_policy"}));
  if (Field proxy = body.any_of({"credentialProxy", "credential_proxy"}); proxy.present()) {
    complain_null(proxy, {"enabled"}, "bool_type", "true or false");
    out.credential_proxy = proxy["enabled"].boolean().value_or(false);
  }
  decode_secure_access(body, out);
  if (Field volumes = body["volumes"]; volumes.present()) out.volumes = decode_volumes(volumes);
  out.hooks = decode_hooks(body["lifecycle"]);
  out.extensions = body["extensions"].string_map().value_or(std::map<std::string, std::string>{});
  return out;
}

std::unexpected<ApiError> conflict(std::string why) {
  return refuse(invalid_request({"value_error", {std::string("body")}, "Value error, " + std::move(why)}));
}

ApiResult<> check_template_mode(const CreateBody& r) {
  auto only = [](bool present, std::string_view field) -> ApiResult<> {
    if (present) return conflict(fmt::format("{} cannot be given together with templateId", field));
    return {};
  };
  TRY(only(!r.image.empty(), "image"));
  TRY(only(r.snapshot_id.has_value(), "snapshotId"));
  TRY(only(r.entrypoint.has_value(), "entrypoint"));
  TRY(only(r.has_env, "env"));
  TRY(only(r.resource_limits.has_value(), "resourceLimits"));
  TRY(only(r.resource_requests.has_value(), "resourceRequests"));
  TRY(only(r.volumes.has_value(), "volumes"));
  TRY(only(r.platform.has_value(), "platform"));
  TRY(only(r.credential_proxy.has_value(), "credentialProxy"));
  TRY(only(r.hooks.has_value(), "lifecycle"));
  TRY(only(r.secure_access, "secureAccess"));
  if (!r.timeout_seconds) return conflict("timeout is required together with templateId");
  return {};
}

ApiResult<> check_across(const CreateBody& r) {
  for (const auto& [key, value] : r.env) {
    if (key == kHooksVariable) return conflict("env must not contain OPENSANDBOX_LIFECYCLE; use lifecycle");
  }
  if (r.template_id) return check_template_mode(r);
  if (!r.pool_ref().empty()) {
    if (r.hooks) return conflict("lifecycle cannot be given together with extensions.poolRef");
    if (r.snapshot_id) return conflict("snapshotId cannot be given together with extensions.poolRef");
    return {};
  }
  if (r.credential_proxy.value_or(false) && !r.network_policy) {
    return conflict("credentialProxy.enabled needs a networkPolicy");
  }
  if (r.image.empty() == !r.snapshot_id.has_value())
    return conflict("exactly one of image and snapshotId must be given");
  if (!r.image.empty() && !r.entrypoint) return conflict("entrypoint is required together with image");
  if (!r.resource_limits) return conflict("resourceLimits is required; {} means no limits");
  return {};
}

// What is wrong with a template as a whole; "" when nothing is.
std::string_view mistake_of_template(const CreateBody& r) {
  if (r.timeout_seconds) return "timeout cannot be in a template: each claim has its own";
  if (r.template_id) return "templateId cannot be in the template of a pool";
  if (!r.pool_ref().empty()) return "extensions.poolRef cannot be in the template of a pool";
  if (r.extensions.contains("restore.env"))
    return "extensions.restore.env cannot be in a template: put env into it";
  if (r.image_auth)
    return "image.auth cannot be in a template: it would have to be kept; use registry.auth_file";
  if (r.image.empty() == !r.snapshot_id.has_value())
    return "exactly one of image and snapshotId must be in a template";
  for (const auto& [key, value] : r.env) {
    if (key == kHooksVariable) return "env must not contain OPENSANDBOX_LIFECYCLE; use lifecycle";
  }
  return {};
}

}  // namespace

CreateBody decode_template(const json::Field& field) {
  if (!field.present()) {
    field.complain("missing", "is required");
    return {};
  }
  CreateBody body = decode_fields(field);
  if (auto mistake = mistake_of_template(body); !mistake.empty()) complain_value(field, std::string(mistake));
  if (!body.resource_limits) body.resource_limits.emplace();
  return body;
}

std::string_view CreateBody::pool_ref() const {
  auto found = extensions.find("poolRef");
  return found == extensions.end() ? std::string_view() : trim(found->second);
}

std::string_view CreateBody::runtime() const {
  auto found = extensions.find(kRuntimeExtension);
  return found == extensions.end() ? std::string_view() : trim(found->second);
}

ApiResult<CreateBody> decode_create(std::string_view content_type, std::string_view body) {
  boost::json::value value = TRY(parse_body(content_type, body));
  json::Issues issues;
  if (!value.is_object()) {
    return refuse(invalid_request({"model_attributes_type", {std::string("body")}, "must be an object"}));
  }
  CreateBody request = decode_fields(Field::root(value, issues, "body"));
  if (!issues.empty()) return refuse(invalid_request(issues));
  TRY(check_across(request));
  return request;
}

}  // namespace osb::api
