#include "api/volumes.h"

#include "api/body.h"
#include "base/strings.h"

namespace osb::api {
namespace {

bool is_dns_label(std::string_view text, size_t limit) {
  auto inner = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (text.empty() || text.size() > limit || text.front() == '-' || text.back() == '-') return false;
  return std::all_of(text.begin(), text.end(), inner);
}

bool is_quantity(std::string_view text) {
  for (std::string_view unit : {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}) {
    if (text.ends_with(unit)) {
      text.remove_suffix(2);
      break;
    }
  }
  size_t dot = text.find('.');
  auto digits = [](std::string_view s) { return !s.empty() && s.find_first_not_of("0123456789") == s.npos; };
  if (dot == text.npos) return digits(text);
  return digits(text.substr(0, dot)) && digits(text.substr(dot + 1));
}

bool is_host_path(std::string_view path) {
  bool drive = path.size() >= 3 && ((path[0] | 32) >= 'a' && (path[0] | 32) <= 'z') && path[1] == ':' &&
               (path[2] == '\\' || path[2] == '/');
  return path.starts_with('/') || drive;
}

void mismatch(const json::Field& field, std::string_view expected) {
  if (field.present() && field.raw()->is_string()) {
    field.complain("string_pattern_mismatch", "must be " + std::string(expected));
  }
}

std::string decode_host(const json::Field& host) {
  json::Field path = host["path"];
  std::string text = path.required_string();
  if (!is_host_path(text)) mismatch(path, "an absolute path");
  return text;
}

void decode_claim(const json::Field& claim, Volume& volume) {
  json::Field name = claim.any_of({"claimName", "claim_name"});
  std::string text = name.required_string();
  if (!is_claim_name(text))
    mismatch(name, "lower-case letters, digits and inner '-', at most 253 characters");
  complain_null(claim, {"createIfNotExists", "create_if_not_exists"}, "bool_type", "true or false");
  complain_null(claim, {"deleteOnSandboxTermination", "delete_on_sandbox_termination"}, "bool_type",
                "true or false");
  volume.source = text;
  volume.backend = Volume::Backend::claim;
  volume.create = claim.any_of({"createIfNotExists", "create_if_not_exists"}).boolean().value_or(true);
  volume.ephemeral =
      claim.any_of({"deleteOnSandboxTermination", "delete_on_sandbox_termination"}).boolean().value_or(false);
  // What says where and how often another kind of server may mount it means nothing here.
  claim.any_of({"storageClass", "storage_class"}).string();
  claim.any_of({"accessModes", "access_modes"}).string_list();
  json::Field storage = claim["storage"];
  volume.storage = storage.string().value_or("");
  if (!volume.storage.empty() && !is_quantity(volume.storage)) mismatch(storage, "a size such as 10Gi");
}

std::string decode_object_store(const json::Field& store) {
  json::Field bucket = store["bucket"];
  std::string text = bucket.required_string();
  if (bucket.present() && text.size() < 3)
    bucket.complain("string_too_short", "must have at least 3 characters");
  if (text.size() > 63) bucket.complain("string_too_long", "must have at most 63 characters");
  for (auto names : {std::pair("endpoint", "endpoint"),
                     {"accessKeyId", "access_key_id"},
                     {"accessKeySecret", "access_key_secret"}}) {
    json::Field field = store.any_of({names.first, names.second});
    if (field.required_string().empty() && field.present()) {
      field.complain("string_too_short", "must have at least 1 character");
    }
  }
  json::Field version = store["version"];
  if (auto word = version.string(); word && *word != "1.0" && *word != "2.0") {
    version.complain("literal_error", "must be '1.0' or '2.0'");
  }
  store["options"].string_list();
  return text;
}

Volume decode_volume(const json::Field& field) {
  Volume volume;
  json::Field name = field["name"], mount = field.any_of({"mountPath", "mount_path"});
  volume.name = name.required_string();
  if (!is_dns_label(volume.name, 63))
    mismatch(name, "lower-case letters, digits and inner '-', at most 63 characters");
  volume.mount_path = mount.required_string();
  if (!volume.mount_path.starts_with('/')) mismatch(mount, "an absolute path");
  complain_null(field, {"readOnly", "read_only"}, "bool_type", "true or false");
  volume.read_only = field.any_of({"readOnly", "read_only"}).boolean().value_or(false);
  volume.sub_path = field.any_of({"subPath", "sub_path"}).string().value_or("");

  json::Field host = field["host"], claim = field["pvc"], store = field["ossfs"];
  int backends = host.present() + claim.present() + store.present();
  if (host.present()) volume.source = decode_host(host);
  if (claim.present()) decode_claim(claim, volume);
  if (store.present())
    volume.source = decode_object_store(store), volume.backend = Volume::Backend::object_store;
  if (backends != 1) complain_value(field, "exactly one of host, pvc and ossfs must be given");
  return volume;
}

}  // namespace

bool is_claim_name(std::string_view text) { return is_dns_label(text, 253); }

std::vector<Volume> decode_volumes(const json::Field& field) {
  std::vector<Volume> volumes;
  if (auto elements = field.array()) {
    for (const json::Field& element : *elements) {
      if (element.present()) {
        volumes.push_back(decode_volume(element));
      } else {
        element.complain("model_attributes_type", "must be an object");
      }
    }
  }
  return volumes;
}

}  // namespace osb::api
