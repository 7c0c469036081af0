#include "image/archive_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"

namespace osb::image {
namespace {

constexpr int kMaxLinks = 8;

// "../x/y" seen from "a/b" is "x/y"; nothing when it leaves the archive.
std::string resolve(const std::string& from, const std::string& link) {
  std::vector<std::string> parts;
  auto walk = [&](std::string_view path) {
    for (std::string_view part : split(path, '/')) {
      if (part.empty() || part == ".") continue;
      if (part != "..") {
        parts.emplace_back(part);
      } else if (parts.empty()) {
        return false;
      } else {
        parts.pop_back();
      }
    }
    return true;
  };
  size_t slash = from.rfind('/');
  if (!walk(slash == from.npos ? "" : from.substr(0, slash)) || !walk(link)) return "";
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : "/") + part;
  return out;
}

}  // namespace

Result<ArchiveFiles> ArchiveFiles::of_archive(Fd file, Members members) {
  struct stat info{};
  if (::fstat(file.get(), &info) < 0) return fail_errno("look at the archive");
  auto size = static_cast<uint64_t>(info.st_size);
  std::erase_if(members, [&](const auto& named) {
    return named.second.offset > size || named.second.size > size - named.second.offset;
  });
  return ArchiveFiles(std::move(file), std::move(members), false);
}

Result<ByteRange> ArchiveFiles::find(const std::string& name) {
  auto missing = [&] { return fail(Code::not_found, name.substr(0, 200) + " is not in the archive"); };
  if (!is_directory_) {
    std::string at = name;
    for (int i = 0; i < kMaxLinks; ++i) {
      auto found = members_.find(at);
      if (found == members_.end()) return missing();
      const Member& member = found->second;
      if (member.link.empty()) return ByteRange{base_.get(), member.offset, member.size};
      at = resolve(at, member.link);
    }
    return missing();
  }
  auto known = opened_.find(name);
  if (known == opened_.end()) {
    auto file = open_beneath(base_.get(), name, O_RDONLY | O_NONBLOCK);
    if (!file && file.error().code == Code::not_found) return missing();
    if (!file) return std::unexpected(std::move(file.error()));
    struct stat info{};
    if (::fstat(file->get(), &info) < 0) return fail_errno(name);
    if (!S_ISREG(info.st_mode)) return missing();
    auto size = static_cast<uint64_t>(info.st_size);
    known = opened_.emplace(name, std::pair(std::move(*file), size)).first;
  }
  return ByteRange{known->second.first.get(), 0, known->second.second};
}

Result<std::string> ArchiveFiles::read(const std::string& name, size_t limit) {
  ByteRange range = TRY(find(name));
  if (*range.size > limit)
    return fail(Code::too_large, name + ": more than " + std::to_string(limit) + " bytes");
  std::string text(static_cast<size_t>(*range.size), '\0');
  for (size_t have = 0; have < text.size();) {
    ssize_t n =
        ::pread(range.fd, text.data() + have, text.size() - have, static_cast<off_t>(range.offset + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("read " + name);
    if (n == 0) return fail(Code::corrupt, name + ": the archive ends within it");
    have += static_cast<size_t>(n);
  }
  return text;
}

}  // namespace osb::image
