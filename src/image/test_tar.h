#pragma once

// Tar archives for tests, written by hand so that they may be wrong.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include "image/layer_stream.h"

namespace osb::image {

class TestTar {
 public:
  struct Entry {
    std::string name;
    char type = '0';
    std::string content;
    std::string link;
    unsigned mode = 0644;
    unsigned uid = 0, gid = 0;
    uint64_t claimed_size = UINT64_MAX;  // in the header, instead of the content's
  };

  TestTar& add(const Entry& e) {
    char header[512] = {};
    std::snprintf(header, 100, "%s", e.name.c_str());
    std::snprintf(header + 100, 8, "%07o", e.mode);
    std::snprintf(header + 108, 8, "%07o", e.uid);
    std::snprintf(header + 116, 8, "%07o", e.gid);
    uint64_t size = e.claimed_size != UINT64_MAX ? e.claimed_size : e.content.size();
    std::snprintf(header + 124, 12, "%011llo", static_cast<unsigned long long>(size));
    std::snprintf(header + 136, 12, "%011o", 1000000000u);
    std::memset(header + 148, ' ', 8);
    header[156] = e.type;
    std::snprintf(header + 157, 100, "%s", e.link.c_str());
    std::memcpy(header + 257, "ustar\00000", 8);
    unsigned sum = 0;
    for (unsigned char c : header) sum += c;
    std::snprintf(header + 148, 8, "%06o", sum);
    bytes_.append(header, 512);
    bytes_ += e.content;
    bytes_.append((512 - e.content.size() % 512) % 512, '\0');
    return *this;
  }
  TestTar& file(const std::string& name, const std::string& content, unsigned mode = 0644) {
    return add({.name = name, .content = content, .link = "", .mode = mode});
  }
  TestTar& directory(const std::string& name, unsigned mode = 0755) {
    return add({.name = name, .type = '5', .content = "", .link = "", .mode = mode});
  }
  TestTar& symlink(const std::string& name, const std::string& target) {
    return add({.name = name, .type = '2', .content = "", .link = target});
  }
  TestTar& hard_link(const std::string& name, const std::string& target) {
    return add({.name = name, .type = '1', .content = "", .link = target});
  }
  // A pax attribute of the next entry.
  TestTar& pax(const std::string& key, const std::string& value) {
    size_t length = key.size() + value.size() + 3;
    for (size_t digits = 1; digits < 8; ++digits) {
      if (std::to_string(length + digits).size() == digits) {
        length += digits;
        break;
      }
    }
    return add({.name = "pax",
                .type = 'x',
                .content = std::to_string(length) + " " + key + "=" + value + "\n",
                .link = ""});
  }

  std::string bytes() const { return bytes_ + std::string(1024, '\0'); }
  const std::string& without_end() const { return bytes_; }

 private:
  std::string bytes_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string bytes, size_t piece = 65536) : bytes_(std::move(bytes)), piece_(piece) {}
  Result<std::span<const char>> next() override {
    size_t n = std::min(piece_, bytes_.size() - at_);
    at_ += n;
    return std::span<const char>(bytes_.data() + at_ - n, n);
  }

 private:
  std::string bytes_;
  size_t piece_, at_ = 0;
};

}  // namespace osb::image
