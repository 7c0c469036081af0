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

// Where a registry, or a mirror of it, is.
struct FetchSource {
  Url base;
  bool perhaps_plain = false;  // its own answer decides whether it is spoken to by TLS
  std::optional<Login> login = {};
};

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
  enum class Rights { pull, push };
  RepositoryClient(HttpClient& http, FetchSource source, std::string repository, Rights rights = Rights::pull)
      : http_(http),
        base_(std::move(source.base)),
        perhaps_plain_(source.perhaps_plain),
        repository_(std::move(repository)),
        login_(std::move(source.login)),
        rights_(rights) {}

  // `version` is a tag or "sha256:...". Code::not_found, unauthenticated, unavailable, timeout; corrupt,
  // too_large or unsupported when what came cannot be used.
  Result<Resolved> resolve(const std::string& version, const std::string& platform);

  // The rest of a blob into a file that has the beginning of it. A server that gives no parts gives all of it
  // again. `told` hears the size of the file as it grows. Code::corrupt when the blob has another size.
  Result<void> download(const std::string& digest, uint64_t size, int file,
                        const std::function<void(uint64_t)>& told);

  // Any request about the repository, with what the registry wants to see of us. `headers` without
  // Authorization; it goes to the registry's own origin only.
  Result<Answer> ask(const std::string& method, const std::string& path, const http::Headers& headers,
                     const Body& body = {});
  // The same at an address that the registry gave.
  Result<Answer> ask_at(const std::string& method, const Url& url, const http::Headers& headers,
                        const Body& body = {});

  const Url& base() const { return base_; }  // final after the first question
  const std::string& repository() const { return repository_; }

 private:
  struct Document {
    std::string text, digest;
  };
  Result<void> settle();
  Result<void> authorize(const Answer& refused);
  std::string scopes(std::string_view asked) const;
  Result<std::string> fetch_token(const std::string& realm, const std::string& service,
                                  const std::string& scopes);
  Result<Document> document(const std::string& path, const std::string& digest);

  HttpClient& http_;
  Url base_;
  bool perhaps_plain_;
  std::string repository_;
  std::optional<Login> login_;
  Rights rights_;
  std::string authorization_;  // what the registry accepted last
};

// What an answer means that is not the one that was hoped for, in the registry's own words where it has some.
std::unexpected<Error> failure_of(Answer& answer, const std::string& what);

// How often and how long to try again: what the network does wrong, not what the registry says.
bool may_be_tried_again(const Error& error);

}  // namespace osb::registry
