#pragma once

// The bytes of a layer: read, hashed and decompressed on a thread of their own, while the caller writes
// files.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"

namespace osb::image {

// Where an unpacker gets its bytes from.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // The next piece, valid until the next call; empty at the end.
  virtual Result<std::span<const char>> next() = 0;
};

// A part of a file, or (without a size) everything up to the end of a file or pipe.
struct ByteRange {
  int fd = -1;
  uint64_t offset = 0;  // ignored without a size
  std::optional<uint64_t> size;
};

enum class Compression { none, gzip, zstd, xz };
// By the first bytes.
Compression detect_compression(std::string_view start);

// next() and the digests belong to one thread. load_libraries() comes first.
class LayerStream : public ByteSource {
 public:
  // `max_bytes` bounds what comes out, also of a stream that compresses to nothing.
  LayerStream(ByteRange range, uint64_t max_bytes);
  ~LayerStream() override;
  LayerStream(const LayerStream&) = delete;

  Result<std::span<const char>> next() override;

  // After the end: of the bytes as they came, and of what they decompress to.
  const std::string& blob_digest() const { return blob_digest_; }
  const std::string& diff_id() const { return diff_id_; }

 private:
  struct Slot {
    std::vector<char> bytes;
    size_t used = 0;
  };
  struct Input;

  void run();
  Result<void> produce();
  Result<void> copy_plain(Input& input);
  Result<void> decompress(Input& input);
  // A free slot; null when the reader is gone.
  Slot* reserve();
  Result<void> publish();

  ByteRange range_;
  uint64_t max_bytes_;
  std::string blob_digest_, diff_id_;  // the thread's until it is done

  Mutex mu_;
  Condition changed_;
  // The slots themselves need no lock: those from read_ to written_ are the caller's, the others the
  // thread's.
  std::vector<Slot> slots_ OSB_GUARDED_BY(mu_);
  size_t written_ OSB_GUARDED_BY(mu_) = 0, read_ OSB_GUARDED_BY(mu_) = 0;  // slots so far
  uint64_t produced_ OSB_GUARDED_BY(mu_) = 0;
  bool holding_ OSB_GUARDED_BY(mu_) = false;  // the caller looks at slot read_
  bool done_ OSB_GUARDED_BY(mu_) = false, abandoned_ OSB_GUARDED_BY(mu_) = false;
  std::optional<Error> error_ OSB_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace osb::image
