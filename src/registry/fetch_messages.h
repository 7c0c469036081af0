#pragma once

// What is said between the process that may write the store (keeper.h) and the one that speaks to registries
// (fetcher.h): JSON in frames. The second one is not believed: what comes from it is decoded strictly.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/frame.h"
#include "registry/client.h"
#include "registry/uploader.h"

namespace osb::registry {

// What an image of this host may be in the registry already, before it is packed.
struct PushWish {
  struct Layer {
    std::vector<Blob> forms;  // any of them will do; none: it was never packed
  };
  std::vector<Layer> layers;        // lowest first
  std::vector<std::string> others;  // repositories of the same registry that may have them
};

struct FetchOrder {
  std::vector<FetchSource> sources;  // mirrors first, the registry itself last
  std::string repository, version, platform;
  HttpSettings http = {};
  std::optional<PushWish> push = {};  // the other way round: `version` is the tag that it gets
};
std::string encode(const FetchOrder& order);
Result<FetchOrder> decode_fetch_order(std::string_view text);

// Digests of the blobs that the keeper lacks.
std::string encode_needs(const std::vector<std::string>& digests);
Result<std::vector<std::string>> decode_needs(std::string_view text);

// What a push is made of. Files are numbers of descriptors that the fetcher was born with.
struct PushContent {
  struct Layer {
    Blob blob;
    int file = -1;  // -1: the registry has it
  };
  std::vector<Layer> layers;
  std::string config, manifest, manifest_type;
};
std::string encode(const PushContent& content);
Result<PushContent> decode_push_content(std::string_view text);

struct FetchEvent {
  enum class Kind { plan, found, progress, done, failed };
  Kind kind = Kind::done;
  Resolved plan = {};  // plan
  // found: for each layer of a push which form of it the registry has; -1 for none.
  std::vector<int> forms = {};
  uint64_t bytes = 0;  // progress: of all layers together
  Error error = {};    // failed
};
std::string encode(const FetchEvent& event);
Result<FetchEvent> decode_fetch_event(std::string_view text);

// Frames on a blocking stream, which is borrowed.
class FrameSocket {
 public:
  explicit FrameSocket(int socket) : socket_(socket) {}
  Result<void> send(std::string_view text);
  // Waits for one. Code::unavailable when the other side is gone.
  Result<std::string> receive();
  // One that is there already, after one read(2) that may block; nothing when it is not whole yet.
  Result<std::optional<std::string>> receive_some();
  // One that was received together with another.
  Result<std::optional<std::string>> next() { return reader_.next(); }

 private:
  static constexpr size_t kMost = 16 << 20;  // the documents of an image, escaped
  int socket_;
  FrameReader reader_{kMost};
};

}  // namespace osb::registry
