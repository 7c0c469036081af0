#include "image/layer_stream.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "image/digest.h"

namespace osb::image {
namespace {

constexpr size_t kSlots = 32;  // on a busy machine either side may wait its turn for some milliseconds
constexpr size_t kSlotBytes = 256 << 10;

}  // namespace

Compression detect_compression(std::string_view start) {
  using namespace std::string_view_literals;
  if (start.starts_with("\x1f\x8b"sv)) return Compression::gzip;
  if (start.starts_with("\x28\xb5\x2f\xfd"sv)) return Compression::zstd;
  if (start.starts_with("\xfd\x37\x7a\x58\x5a\x00"sv)) return Compression::xz;
  return Compression::none;
}

// The range as libarchive's reading callback wants it.
struct LayerStream::Input {
  explicit Input(const ByteRange& range)
      : range(range), left(range.size.value_or(UINT64_MAX)), at(range.offset) {}

  // Fills `into` as far as there are bytes; 0 at the end.
  Result<size_t> read(std::span<char> into) {
    size_t have = 0;
    while (have < into.size() && left > 0) {
      size_t want = static_cast<size_t>(std::min<uint64_t>(into.size() - have, left));
      ssize_t n = range.size ? ::pread(range.fd, into.data() + have, want, static_cast<off_t>(at))
                             : ::read(range.fd, into.data() + have, want);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail_errno("read the archive");
      if (n == 0 && range.size) return fail(Code::corrupt, "the archive ends in the middle of a layer");
      if (n == 0) break;
      have += static_cast<size_t>(n);
      at += static_cast<uint64_t>(n);
      if (range.size) left -= static_cast<uint64_t>(n);
    }
    return have;
  }

  // What was read to look at the first bytes comes first; it is hashed already.
  Result<std::string_view> next() {
    if (!ahead.empty()) {
      buffer = std::move(ahead);
      ahead.clear();
      return std::string_view(buffer.data(), buffer.size());
    }
    buffer.resize(kSlotBytes);
    std::string_view piece(buffer.data(), TRY(read(buffer)));
    blob.add(piece);
    return piece;
  }

  static la_ssize_t on_read(struct archive*, void* self, const void** bytes) {
    auto& input = *static_cast<Input*>(self);
    auto piece = input.next();
    if (!piece) {
      input.error = std::move(piece.error());
      return -1;
    }
    *bytes = piece->data();
    return static_cast<la_ssize_t>(piece->size());
  }

  ByteRange range;
  uint64_t left, at;
  std::vector<char> buffer, ahead;
  Sha256 blob;
  std::optional<Error> error;
};

LayerStream::LayerStream(ByteRange range, uint64_t max_bytes)
    : range_(range), max_bytes_(max_bytes), slots_(kSlots), thread_([this] { run(); }) {}

LayerStream::~LayerStream() {
  {
    MutexLock lock(mu_);
    abandoned_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LayerStream::run() {
  auto produced = produce();
  MutexLock lock(mu_);
  if (!produced) error_ = std::move(produced.error());
  done_ = true;
  changed_.notify_all();
}

Result<void> LayerStream::produce() {
  Input input(range_);
  std::vector<char> first(kSlotBytes);
  first.resize(TRY(input.read(first)));
  input.blob.add({first.data(), first.size()});
  bool plain = detect_compression({first.data(), first.size()}) == Compression::none;
  input.ahead = std::move(first);
  return plain ? copy_plain(input) : decompress(input);
}

LayerStream::Slot* LayerStream::reserve() {
  MutexLock lock(mu_);
  while (!abandoned_ && written_ - read_ >= kSlots) changed_.wait(mu_);
  if (abandoned_) return nullptr;
  Slot& slot = slots_[written_ % kSlots];
  slot.used = 0;
  return &slot;
}

Result<void> LayerStream::publish() {
  MutexLock lock(mu_);
  produced_ += slots_[written_ % kSlots].used;
  if (produced_ > max_bytes_) {
    return fail(Code::too_large, "it decompresses to more than " + std::to_string(max_bytes_) + " bytes");
  }
  ++written_;
  changed_.notify_all();
  return {};
}

Result<void> LayerStream::copy_plain(Input& input) {
  // The first piece is hashed already; the others are read into the slot where the caller finds them.
  for (std::vector<char> piece = std::move(input.ahead);;) {
    Slot* slot = reserve();
    if (!slot) return {};
    if (!piece.empty()) {
      slot->used = piece.size();
      slot->bytes = std::move(piece);
      piece.clear();
    } else {
      slot->bytes.resize(kSlotBytes);
      slot->used = TRY(input.read(slot->bytes));
      if (slot->used == 0) break;
      input.blob.add({slot->bytes.data(), slot->used});
    }
    TRY(publish());
  }
  blob_digest_ = diff_id_ = input.blob.hex();
  return {};
}

Result<void> LayerStream::decompress(Input& input) {
  const Libraries& lib = libraries();
  std::unique_ptr<struct archive, decltype(lib.archive_read_free)> reader(lib.archive_read_new(),
                                                                          lib.archive_read_free);
  lib.archive_read_support_filter_gzip(reader.get());
  lib.archive_read_support_filter_zstd(reader.get());
  lib.archive_read_support_filter_xz(reader.get());
  lib.archive_read_support_format_raw(reader.get());
  lib.archive_read_support_format_empty(reader.get());
  auto broken = [&](const char* what) -> Result<void> {
    if (input.error) return std::unexpected(std::move(*input.error));
    const char* text = lib.archive_error_string(reader.get());
    return fail(Code::corrupt, std::string(what) + ": " + (text ? text : "unknown reason"));
  };
  struct archive_entry* entry = nullptr;
  if (lib.archive_read_open(reader.get(), &input, nullptr, Input::on_read, nullptr) != ARCHIVE_OK) {
    return broken("cannot be decompressed");
  }
  int status = lib.archive_read_next_header(reader.get(), &entry);
  if (status != ARCHIVE_OK && status != ARCHIVE_EOF) return broken("cannot be decompressed");
  Sha256 diff;
  Slot* slot = nullptr;
  while (status == ARCHIVE_OK) {
    const void* bytes = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    status = lib.archive_read_data_block(reader.get(), &bytes, &size, &offset);
    if (status != ARCHIVE_OK && status != ARCHIVE_EOF) return broken("cannot be decompressed");
    std::string_view piece(static_cast<const char*>(bytes), status == ARCHIVE_EOF ? 0 : size);
    diff.add(piece);
    // Small blocks of the decompressor are put together: each hand-over wakes the other side.
    while (!piece.empty()) {
      if (!slot && !(slot = reserve())) return {};
      slot->bytes.resize(kSlotBytes);
      size_t n = std::min(piece.size(), kSlotBytes - slot->used);
      std::memcpy(slot->bytes.data() + slot->used, piece.data(), n);
      slot->used += n;
      piece.remove_prefix(n);
      if (slot->used < kSlotBytes) break;
      TRY(publish());
      slot = nullptr;
    }
  }
  if (slot) TRY(publish());
  while (!TRY(input.next()).empty()) {
  }  // what follows the compressed data belongs to the blob too
  diff_id_ = diff.hex();
  blob_digest_ = input.blob.hex();
  return {};
}

Result<std::span<const char>> LayerStream::next() {
  MutexLock lock(mu_);
  if (holding_) {
    ++read_;
    holding_ = false;
    changed_.notify_all();
  }
  while (!done_ && written_ <= read_) changed_.wait(mu_);
  if (written_ > read_) {
    holding_ = true;
    Slot& slot = slots_[read_ % kSlots];
    return std::span<const char>(slot.bytes.data(), slot.used);
  }
  if (error_) return std::unexpected(*error_);
  return std::span<const char>();
}

}  // namespace osb::image
