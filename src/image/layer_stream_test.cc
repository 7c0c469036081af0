#include "image/layer_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "image/digest.h"

namespace osb::image {
namespace {

using namespace std::string_view_literals;
using ::testing::HasSubstr;

// "hello hello hello hello\n" as gzip writes it.
constexpr std::string_view kText = "hello hello hello hello\n";
constexpr auto kGzip =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x27\xb9\x00\x00\x88\x59\x0b\x18\x00\x00\x00"sv;

struct Read {
  std::string bytes, blob, diff, error;
};

Read read_everything(std::string_view bytes, uint64_t max_bytes = 1 << 30,
                     std::optional<ByteRange> part = {}) {
  Fd file(::memfd_create("layer", MFD_CLOEXEC));
  EXPECT_TRUE(write_all(file.get(), bytes));
  ByteRange range = part.value_or(ByteRange{.fd = -1, .offset = 0, .size = bytes.size()});
  range.fd = file.get();
  LayerStream stream(range, max_bytes);
  Read out;
  while (true) {
    auto piece = stream.next();
    if (!piece) {
      out.error = piece.error().message;
      return out;
    }
    if (piece->empty()) break;
    out.bytes.append(piece->data(), piece->size());
  }
  out.blob = stream.blob_digest();
  out.diff = stream.diff_id();
  return out;
}

class Stream : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(load_libraries()); }
};

TEST_F(Stream, PlainBytesComeAsTheyAre) {
  std::string large;
  for (int i = 0; large.size() < (9u << 20) + 17; ++i) large += std::to_string(i * 7919) + "\n";
  for (std::string_view bytes : {std::string_view(large), kText, ""sv}) {
    Read read = read_everything(bytes);
    EXPECT_EQ(read.error, "");
    EXPECT_EQ(read.bytes.size(), bytes.size());
    EXPECT_TRUE(read.bytes == bytes);
    EXPECT_EQ(read.diff, sha256(bytes));
    EXPECT_EQ(read.blob, sha256(bytes));
  }
}

TEST_F(Stream, CompressedBytesHaveTwoDigests) {
  Read read = read_everything(kGzip);
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(read.bytes, kText);
  EXPECT_EQ(read.diff, sha256(kText));
  EXPECT_EQ(read.blob, sha256(kGzip));
}

TEST_F(Stream, PartsOfAFile) {
  std::string around = "before" + std::string(kText) + "after";
  Read read = read_everything(around, 1 << 20, ByteRange{.fd = -1, .offset = 6, .size = kText.size()});
  EXPECT_EQ(read.bytes, kText);
  EXPECT_EQ(read.diff, sha256(kText));
  Read beyond = read_everything(around, 1 << 20, ByteRange{.fd = -1, .offset = 6, .size = 1000});
  EXPECT_THAT(beyond.error, HasSubstr("ends in the middle"));
}

TEST_F(Stream, BrokenAndOversized) {
  EXPECT_NE(read_everything(kGzip.substr(0, 20)).error, "");
  EXPECT_NE(read_everything(kGzip.substr(0, kGzip.size() - 6)).error, "");
  std::string damaged(kGzip);
  damaged[12] ^= 0x55;
  EXPECT_NE(read_everything(damaged).error, "");
  EXPECT_THAT(read_everything(std::string(1 << 20, 'x'), 1000).error, HasSubstr("more than 1000 bytes"));
  EXPECT_THAT(read_everything(kGzip, 10).error, HasSubstr("more than 10 bytes"));
}

TEST_F(Stream, AReaderMayLeaveEarly) {
  Fd file(::memfd_create("layer", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 64 << 20), 0);
  LayerStream stream({.fd = file.get(), .offset = 0, .size = 64 << 20}, 1 << 30);
  EXPECT_TRUE(stream.next());
}

TEST(Compression, ByTheFirstBytes) {
  EXPECT_EQ(detect_compression("\x1f\x8b\x08"sv), Compression::gzip);
  EXPECT_EQ(detect_compression("\x28\xb5\x2f\xfd\x00"sv), Compression::zstd);
  EXPECT_EQ(detect_compression("\xfd\x37\x7a\x58\x5a\x00"sv), Compression::xz);
  EXPECT_EQ(detect_compression("\x1f"sv), Compression::none);
  EXPECT_EQ(detect_compression(""sv), Compression::none);
  EXPECT_EQ(detect_compression("plain"sv), Compression::none);
}

}  // namespace
}  // namespace osb::image
