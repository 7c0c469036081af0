#pragma once

// One repository of one registry, as the OCI distribution API shows it: documents by tag or digest, blobs.
// Every document is checked against the digest that it was asked for by.

#include <functional>
#include <optional>
#include <string>

#include "image/manifest.h"
#include "registry/exchange.h"
#include "registry/login.h"

namespace osb::registry {

// What stands behind a name: everything but the layers' bytes.
struct Resolved {
  std::string manifest_digest;  // of the manifest for this machine
  image::ImageConfig config;
  struct Layer {
    std::string digest;   // of the bytes that are downloaded
    uint64_t size = 0;    // of them
    std::string diff_id;  // what they decompress to
  };
  std::vector<Layer> layers;  // lowest first
};

class RepositoryClient {
 public:
  // `base` is the registry or a mirror of it.
  RepositoryClient(HttpClient& http, Url base, std::string repository, std::optional<Login> login)
      : http_(http), base_(std::move(base)), repository_(std::move(repository)), login_(std::move(login)) {}

  // `version` is a tag or "sha256:...". Code::not_found, unauthenticated, unavailable, timeout; corrupt,
  // too_large or unsupported when what came cannot be used.
  Result<Resolved> resolve(const std::string& version, const std::string& platform);

  // The rest of a blob into a file that has the beginning of it. A server that gives no parts gives all of it
  // again. `told` hears the size of the file as it grows. Code::corrupt when the blob has another size.
  Result<void> download(const std::string& digest, uint64_t size, int file,
                        const std::function<void(uint64_t)>& told);

  const Url& base() const { return base_; }

 private:
  struct Document {
    std::string text, digest;
  };
  Result<Answer> get(const std::string& path, http::Headers headers);
  Result<Answer> get_again(const std::string& path, http::Headers headers, const Answer& refused);
  Result<std::string> fetch_token(const std::string& realm, const std::string& service,
                                  const std::string& scope);
  Result<Document> document(const std::string& path, const std::string& digest);

  HttpClient& http_;
  Url base_;
  std::string repository_;
  std::optional<Login> login_;
  std::string authorization_;  // what the registry accepted last
};

// How often and how long to try again: what the network does wrong, not what the registry says.
bool may_be_tried_again(const Error& error);

}  // namespace osb::registry
