#include "image/unpack.h"

#include <unistd.h>

#include <algorithm>

#include "image/libraries.h"

namespace osb::image {
namespace {

constexpr uint64_t kHeaderBytes = 4096;  // of an entry at most, on average
constexpr uint64_t kProgressBytes = 8 << 20;
constexpr uint64_t kProgressEntries = 2048;
constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";
constexpr std::string_view kAufsPrivate = ".wh..wh.";

// Names from an archive on their way to a terminal.
std::string printable(std::string_view name) {
  std::string out(name.substr(0, 200));
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return out;
}

class Unpacker {
 public:
  Unpacker(ByteSource& source, int directory, const UnpackOptions& options)
      : lib_(libraries()), source_(source), options_(options), writer_(directory, options.owners) {}

  Result<UnpackReport> run() {
    std::unique_ptr<struct archive, decltype(lib_.archive_read_free)> reader(lib_.archive_read_new(),
                                                                             lib_.archive_read_free);
    reader_ = reader.get();
    lib_.archive_read_support_format_tar(reader_);
    lib_.archive_read_support_format_empty(reader_);
    if (lib_.archive_read_open(reader_, this, nullptr, on_read, nullptr) != ARCHIVE_OK) return broken();
    while (true) {
      struct archive_entry* entry = nullptr;
      int status = lib_.archive_read_next_header(reader_, &entry);
      if (status == ARCHIVE_EOF) break;
      if (status < ARCHIVE_WARN) return broken();  // a warning is about a part of a header that is not used
      const char* path = lib_.archive_entry_pathname(entry);
      if (!path) return fail(Code::corrupt, "an entry whose name is not valid UTF-8");
      TRY(in_context(printable(path), write(path, entry)));
    }
    TRY(writer_.finish());
    // The digest covers what follows the end mark, too.
    while (!TRY(source_.next()).empty()) {
    }
    for (const std::string& path : writer_.opaque()) report_.opaque.push_back(path);
    if (options_.progress) options_.progress(report_.bytes, report_.entries);
    return std::move(report_);
  }

 private:
  static la_ssize_t on_read(struct archive*, void* self, const void** bytes) {
    auto& unpacker = *static_cast<Unpacker*>(self);
    auto piece = unpacker.source_.next();
    if (!piece) {
      unpacker.source_error_ = std::move(piece.error());
      return -1;
    }
    *bytes = piece->data();
    return static_cast<la_ssize_t>(piece->size());
  }

  std::unexpected<Error> broken() {
    if (source_error_) return std::unexpected(std::move(*source_error_));
    const char* text = lib_.archive_error_string(reader_);
    return fail(Code::corrupt,
                std::string("not a readable tar archive: ") + (text ? text : "unknown reason"));
  }

  Result<void> write(const char* raw_path, struct archive_entry* entry) {
    if (++report_.entries > options_.max_entries) {
      return fail(Code::too_large, "more than " + std::to_string(options_.max_entries) + " entries");
    }
    tell_progress();
    std::string path = TRY(clean_entry_path(raw_path));
    if (options_.whiteouts) {
      size_t slash = path.rfind('/');
      std::string_view name = std::string_view(path).substr(slash == path.npos ? 0 : slash + 1);
      if (name.starts_with(kWhiteout)) return whiteout(path, name);
    }
    Attributes attributes{static_cast<mode_t>(lib_.archive_entry_perm(entry)), lib_.archive_entry_uid(entry),
                          lib_.archive_entry_gid(entry), lib_.archive_entry_mtime(entry),
                          std::clamp(lib_.archive_entry_mtime_nsec(entry), 0l, 999'999'999l)};
    if (const char* target = lib_.archive_entry_hardlink(entry)) {
      return writer_.hard_link(path, TRY(clean_entry_path(target)));
    }
    switch (lib_.archive_entry_filetype(entry)) {
      case AE_IFREG:
        return file(path, attributes, entry);
      case AE_IFDIR: {
        TRY(writer_.directory(path, attributes));
        return xattrs(path, -1, entry);
      }
      case AE_IFLNK: {
        const char* target = lib_.archive_entry_symlink(entry);
        return writer_.symlink(path, target ? target : "", attributes);
      }
      case AE_IFIFO:
        return writer_.fifo(path, attributes);
      default:
        ++report_.devices;  // and what else has no content: sandboxes get their devices from us
        return {};
    }
  }

  Result<void> file(const std::string& path, const Attributes& attributes, struct archive_entry* entry) {
    int64_t size = lib_.archive_entry_size(entry);
    if (size < 0 || static_cast<uint64_t>(size) > options_.max_bytes - report_.bytes) return too_large();
    Fd fd = TRY(writer_.create_file(path, attributes));
    TRY(content(fd.get(), size));
    TRY(xattrs(path, fd.get(), entry));
    return writer_.finish_file(fd.get(), attributes);
  }

  std::unexpected<Error> too_large() const {
    return fail(Code::too_large, "the image is larger than " + std::to_string(options_.max_bytes) + " bytes");
  }

  // Holes stay holes.
  Result<void> content(int fd, int64_t size) {
    int64_t end = 0;
    uint64_t written = 0;
    while (true) {
      const void* bytes = nullptr;
      size_t count = 0;
      la_int64_t offset = 0;
      int status = lib_.archive_read_data_block(reader_, &bytes, &count, &offset);
      if (status == ARCHIVE_EOF) break;
      if (status != ARCHIVE_OK) return broken();
      if (count == 0) continue;
      if (offset < end || offset > size || static_cast<int64_t>(count) > size - offset) {
        return fail(Code::corrupt, "its content does not fit its size");
      }
      auto piece = static_cast<const char*>(bytes);
      for (size_t done = 0; done < count;) {
        ssize_t n = ::pwrite(fd, piece + done, count - done, offset + static_cast<off_t>(done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno("write");
        done += static_cast<size_t>(n);
      }
      end = offset + static_cast<int64_t>(count);
      report_.bytes += count;
      written += count;
      tell_progress();
    }
    if (end < size && ::ftruncate(fd, size) < 0) return fail_errno("set the size");
    report_.bytes += static_cast<uint64_t>(size) - written;
    return {};
  }

  // user.* and file capabilities; what only a kernel or another system can mean stays out.
  Result<void> xattrs(const std::string& path, int fd, struct archive_entry* entry) {
    lib_.archive_entry_xattr_reset(entry);
    const char* name = nullptr;
    const void* value = nullptr;
    size_t size = 0;
    Fd directory;
    while (lib_.archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK && name) {
      std::string_view key = name;
      if (key.starts_with("trusted.")) {
        return fail(Code::permission_denied,
                    "it carries " + printable(key) + ", which an image must not set");
      }
      if (key != "security.capability" && !key.starts_with("user.")) {
        ++report_.xattrs;
        continue;
      }
      if (fd < 0) {
        directory = TRY(writer_.open_for_xattr(path));
        fd = directory.get();
      }
      auto set = writer_.set_xattr(fd, name, {static_cast<const char*>(value), size});
      if (!set && set.error().sys_errno == ENOSPC) return set;
      if (!set) ++report_.xattrs;  // of no valid form
    }
    return {};
  }

  Result<void> whiteout(const std::string& path, std::string_view name) {
    std::string above = path.substr(0, path.size() - name.size());
    if (name == kOpaque) {
      if (above.ends_with('/')) above.pop_back();
      report_.opaque.push_back(above);
      return writer_.ensure_directory(above);
    }
    if (name.starts_with(kAufsPrivate)) return {};  // of the storage that made the archive
    std::string hidden(name.substr(kWhiteout.size()));
    if (hidden.empty() || hidden == "." || hidden == "..") {
      return fail(Code::invalid_argument, "a whiteout without a name");
    }
    if (!TRY(writer_.whiteout(above + hidden))) report_.opaque.push_back(above + hidden);
    return {};
  }

  void tell_progress() {
    if (!options_.progress) return;
    if (report_.bytes - told_bytes_ < kProgressBytes && report_.entries - told_entries_ < kProgressEntries)
      return;
    told_bytes_ = report_.bytes;
    told_entries_ = report_.entries;
    options_.progress(report_.bytes, report_.entries);
  }

  const Libraries& lib_;
  ByteSource& source_;
  const UnpackOptions& options_;
  TreeWriter writer_;
  struct archive* reader_ = nullptr;
  std::optional<Error> source_error_;
  UnpackReport report_;
  uint64_t told_bytes_ = 0, told_entries_ = 0;
};

}  // namespace

uint64_t max_stream_bytes(const UnpackOptions& options) {
  return options.max_bytes + options.max_entries * kHeaderBytes + (1 << 20);
}

Result<UnpackReport> unpack(ByteSource& source, int directory, const UnpackOptions& options) {
  return Unpacker(source, directory, options).run();
}

}  // namespace osb::image
