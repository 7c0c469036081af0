#pragma once

// Writing to a repository, as the OCI distribution API has it: blobs in pieces, each of which may be asked
// about when the connection broke, then the documents. Nothing has a name there before its manifest is put,
// which is the last thing.

#include <string>

#include "registry/at_once.h"
#include "registry/client.h"

namespace osb::registry {

struct Blob {
  std::string digest;  // hexadecimal digits
  uint64_t size = 0;
};

class Uploader {
 public:
  explicit Uploader(RepositoryClient& client) : client_(client) {}

  // Whether we may write there at all: begins an upload, and gives it up.
  Result<void> probe();
  Result<bool> has(const Blob& blob);
  // Whether the registry has it in another repository, and lets us use it from there.
  Result<bool> mount(const Blob& blob, const std::string& from);
  // From a file; goes on where the network broke it off. Code::corrupt when the registry finds another
  // digest.
  Result<void> upload(const Blob& blob, int file, const Told& told);
  // A small one.
  Result<void> upload(const std::string& text);
  Result<void> put_manifest(const std::string& tag, const std::string& media_type, const std::string& text);

 private:
  // An upload under way: where, and how much of it has arrived.
  struct Session {
    Url url;
    uint64_t arrived = 0;
    bool doubtful = false;  // how much that is has to be asked
  };
  Result<Session> begin();
  void give_up(const Url& upload);
  Result<void> look_again(Session& session, uint64_t size);
  Result<void> send_piece(Session& session, const Blob& blob, int file, const Told& told);
  Result<void> finish(const Session& session, const std::string& digest, const Body& body);

  RepositoryClient& client_;
};

}  // namespace osb::registry
