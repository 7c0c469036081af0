#include "registry/client.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "base/sha256.h"
#include "base/shown.h"
#include "base/strings.h"
#include "image/described.h"
#include "image/digest.h"
#include "registry/challenge.h"

namespace osb::registry {
namespace {

constexpr size_t kMaxToken = 64 * 1024;
constexpr size_t kMaxErrorBody = 16 * 1024;
constexpr size_t kPiece = 256 * 1024;

constexpr char kManifestTypes[] =
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json";

std::string hex_digest(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (uint8_t byte : sha256_digest(text)) {
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

std::string base64(std::string_view bytes) {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j)
      out.push_back(i + j <= bytes.size() ? kAlphabet[group >> (18 - 6 * j) & 63] : '=');
  }
  return out;
}

std::string basic(const Login& login) { return "Basic " + base64(login.username + ":" + login.password); }

// What the registry says about it, if it says anything: {"errors":[{"code","message"}]}.
std::string words_of(Answer& answer) {
  auto body = answer.read_all(kMaxErrorBody);
  auto value = body ? json::parse(*body) : Result<boost::json::value>(fail(Code::corrupt, ""));
  if (!value) return "";
  json::Issues issues;
  auto errors = json::Field::root(*value, issues, "answer")["errors"].array();
  if (!errors || errors->empty()) return "";
  std::string message = errors->front()["message"].string().value_or("");
  return message.empty() ? "" : ": " + shown(message);
}

}  // namespace

std::unexpected<Error> failure_of(Answer& answer, const std::string& what) {
  int status = answer.status();
  std::string text = answer.url().origin() + " answers " + std::to_string(status) + " for " + what;
  Code code = Code::corrupt;
  if (status == 401 || status == 403) code = Code::unauthenticated;
  if (status == 404) code = Code::not_found;
  if (status == 408 || status == 429 || status >= 500) code = Code::unavailable;
  return fail(code, text + words_of(answer));
}

bool may_be_tried_again(const Error& error) {
  return error.code == Code::unavailable || error.code == Code::timeout;
}

// Once, before anything is said that somebody should not hear: from then on it is TLS, whatever goes wrong
// with it, or it is not.
Result<void> RepositoryClient::settle() {
  if (!perhaps_plain_) return {};
  auto patience = http_.settings().patience;
  Url plain = base_;
  plain.tls = false;
  auto tls = speaks_tls(base_, patience);
  // A name without a port stands for either: where nobody listens at that of TLS, the other one is meant.
  if (!tls && tls.error().sys_errno == ECONNREFUSED && base_.port == 443) {
    plain.port = 80;
    auto other = speaks_tls(plain, patience);
    if (other) tls = other;
  }
  if (!TRY(std::move(tls))) base_ = std::move(plain);
  perhaps_plain_ = false;
  return {};
}

Result<Answer> RepositoryClient::ask(const std::string& method, const std::string& path,
                                     const http::Headers& headers, const Body& body) {
  TRY(settle());
  Url url = base_;
  url.target = "/v2/" + repository_ + path;
  return ask_at(method, url, headers, body);
}

Result<Answer> RepositoryClient::ask_at(const std::string& method, const Url& url,
                                        const http::Headers& headers, const Body& body) {
  http::Headers first = headers;
  bool ours = url.same_origin(base_);
  if (ours && !authorization_.empty()) first.set("Authorization", authorization_);
  Answer answer = TRY(http_.send(method, url, std::move(first), body));
  // Only of the registry itself: what an object store behind it refuses is not a matter of passwords.
  if (!ours || answer.status() != 401 || !answer.url().same_origin(base_)) return answer;
  TRY(authorize(answer));
  http::Headers again = headers;
  again.set("Authorization", authorization_);
  return http_.send(method, url, std::move(again), body);
}

// What a token is asked for: what the registry named, and writing where we are going to write.
std::string RepositoryClient::scopes(std::string_view asked) const {
  std::string ours = "repository:" + repository_ + (rights_ == Rights::push ? ":pull,push" : ":pull");
  if (rights_ == Rights::pull && !asked.empty()) return std::string(asked);
  std::string out = ours;
  for (std::string_view one : split(asked, ' ')) {
    if (!one.empty() && !one.starts_with("repository:" + repository_ + ":")) out += " " + std::string(one);
  }
  return out;
}

Result<void> RepositoryClient::authorize(const Answer& refused) {
  std::vector<Challenge> challenges;
  for (const auto& [name, value] : refused.fields()) {
    if (!iequals(name, "WWW-Authenticate")) continue;
    for (Challenge& one : TRY(parse_challenges(value))) challenges.push_back(std::move(one));
  }
  authorization_.clear();
  for (const Challenge& one : challenges) {
    if (one.scheme == "bearer") {
      authorization_ =
          "Bearer " + TRY(fetch_token(std::string(one.get("realm")), std::string(one.get("service")),
                                      scopes(one.get("scope"))));
      break;
    }
    if (one.scheme == "basic" && login_) {
      authorization_ = basic(*login_);
      break;
    }
  }
  if (!authorization_.empty()) return {};
  return fail(Code::unauthenticated,
              base_.origin() + (login_ ? " wants another way of logging in than a name and a password"
                                       : " wants a name and a password; give them in image.auth, or name a "
                                         "docker login file in registry.auth_file"));
}

Result<std::string> RepositoryClient::fetch_token(const std::string& realm, const std::string& service,
                                                  const std::string& scopes) {
  Url url = TRY(in_context(base_.origin() + " names a token service", parse_url(realm)));
  if (base_.tls && !url.tls)
    return fail(Code::permission_denied,
                base_.origin() + " wants the password sent to plain HTTP at " + url.authority());
  url.target += url.target.find('?') == std::string::npos ? "?" : "&";
  if (!service.empty()) url.target += "service=" + percent_encode(service) + "&";
  std::string parts;
  for (std::string_view one : split(scopes, ' '))
    parts += (parts.empty() ? "scope=" : "&scope=") + percent_encode(one);
  url.target += parts;
  http::Headers headers;
  if (login_) headers.add("Authorization", basic(*login_));
  Answer answer = TRY(http_.get(url, std::move(headers)));
  if (answer.status() != 200) return failure_of(answer, "a token");
  auto value = json::parse(TRY(answer.read_all(kMaxToken)));
  if (!value) return fail(Code::corrupt, url.origin() + " gives a token that is no JSON");
  json::Issues issues;
  auto field = json::Field::root(*value, issues, "token");
  std::string token = field["token"].string().value_or("");
  if (token.empty()) token = field["access_token"].string().value_or("");
  if (token.empty() || token.find_first_of(" \r\n\t") != token.npos)
    return fail(Code::corrupt, url.origin() + " gives no token");
  return token;
}

Result<RepositoryClient::Document> RepositoryClient::document(const std::string& path,
                                                              const std::string& digest) {
  http::Headers headers;
  if (path.starts_with("/manifests/")) headers.add("Accept", kManifestTypes);
  Answer answer = TRY(ask("GET", path, headers));
  if (answer.status() != 200) return failure_of(answer, repository_ + path);
  Document out;
  out.text = TRY(answer.read_all(image::kMaxDocument));
  out.digest = hex_digest(out.text);
  if (!digest.empty() && out.digest != digest)
    return fail(Code::corrupt, base_.origin() + ": " + path + " is not what its digest promises");
  return out;
}

Result<Resolved> RepositoryClient::resolve(const std::string& version, const std::string& platform) {
  auto pinned = image::parse_digest(version);
  Document first = TRY(document("/manifests/" + version, pinned ? *pinned : ""));
  auto text_of = [this](const char* place, const std::string& digest) -> Result<std::string> {
    return std::move(TRY(document(place + digest, digest)).text);
  };
  image::Documents documents{
      .manifest = [&](const std::string& digest) { return text_of("/manifests/sha256:", digest); },
      .config = [&](const std::string& digest) { return text_of("/blobs/sha256:", digest); }};
  auto found = TRY(image::describe(std::move(first.digest), first.text, platform, documents));
  Resolved out{.manifest_digest = found.digest, .config = std::move(found.config.config), .layers = {}};
  for (size_t i = 0; i < found.manifest.layers.size(); ++i) {
    const image::Descriptor& layer = found.manifest.layers[i];
    out.layers.push_back({layer.digest, layer.size, found.config.diff_ids[i]});
  }
  return out;
}

Result<void> RepositoryClient::download(const std::string& digest, uint64_t size, int file,
                                        const std::function<void(uint64_t)>& told) {
  struct stat info{};
  if (::fstat(file, &info) < 0) return fail_errno("look at the file of a layer");
  uint64_t have = static_cast<uint64_t>(info.st_size);
  if (have > size) have = 0;
  http::Headers headers;
  if (have > 0) headers.add("Range", "bytes=" + std::to_string(have) + "-");
  Answer answer = TRY(ask("GET", "/blobs/sha256:" + digest, headers));
  bool part = answer.status() == 206;
  // From where we asked, or it would be put in the wrong place.
  if (part && !answer.field("Content-Range").starts_with("bytes " + std::to_string(have) + "-"))
    return fail(Code::corrupt, base_.origin() + " gives another part of a layer than it was asked for");
  if (!part && answer.status() != 200 && answer.status() != 416)
    return failure_of(answer, repository_ + "/blobs/sha256:" + digest);
  if (!part) have = 0;
  if (::ftruncate(file, static_cast<off_t>(have)) < 0) return fail_errno("shorten the file of a layer");
  if (answer.status() == 416) return fail(Code::unavailable, "the registry has no such part; starting over");
  if (answer.length() && *answer.length() != size - have) {
    return fail(Code::corrupt, "layer sha256:" + digest + " has another size than the manifest says: " +
                                   std::to_string(*answer.length() + have) + " instead of " +
                                   std::to_string(size));
  }
  if (::lseek(file, static_cast<off_t>(have), SEEK_SET) < 0) return fail_errno("go on with a layer");
  std::string piece(kPiece, '\0');
  while (size_t count = TRY(answer.read(piece))) {
    if (count > size - have)
      return fail(Code::corrupt, "layer sha256:" + digest + " is longer than the manifest says");
    TRY(in_context("keep a layer", write_all(file, std::string_view(piece).substr(0, count))));
    have += count;
    told(have);
  }
  if (have < size) return fail(Code::unavailable, "the layer ended too early");
  return {};
}

}  // namespace osb::registry
