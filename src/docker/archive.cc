#include "docker/archive.h"

#include <cstdio>

namespace osb::docker {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kName = 0, kMode = 100, kUser = 108, kGroup = 116, kSize = 124, kTime = 136, kSum = 148,
                 kType = 156, kMagic = 257;

void put(std::string& header, size_t at, std::string_view text) { header.replace(at, text.size(), text); }

std::string octal(unsigned long long value, int digits) {
  char text[16];
  int length = std::snprintf(text, sizeof text, "%0*llo", digits, value);
  return {text, static_cast<size_t>(length)};
}

std::string header_of(const ArchiveFile& file) {
  std::string out(kBlock, '\0');
  put(out, kName, file.name);
  put(out, kMode, octal(file.mode, 7));
  put(out, kUser, octal(0, 7));
  put(out, kGroup, octal(0, 7));
  put(out, kSize, octal(file.bytes.size(), 11));
  put(out, kTime, octal(0, 11));
  put(out, kSum, "        ");  // the sum is over these
  put(out, kType, "0");
  put(out, kMagic, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (unsigned char byte : out) sum += byte;
  put(out, kSum, octal(sum, 6) + std::string("\0 ", 2));
  return out;
}

}  // namespace

std::string archive_of(const std::vector<ArchiveFile>& files) {
  size_t size = 2 * kBlock;
  for (const ArchiveFile& file : files) size += file.bytes.size() + 2 * kBlock;
  std::string out;
  out.reserve(size);
  for (const ArchiveFile& file : files) {
    out.append(header_of(file)).append(file.bytes);
    out.append((kBlock - file.bytes.size() % kBlock) % kBlock, '\0');
  }
  return out.append(2 * kBlock, '\0');
}

}  // namespace osb::docker
