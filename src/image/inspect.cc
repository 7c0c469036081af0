#include "image/inspect.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>

#include "base/cleanup.h"
#include "base/hex.h"
#include "image/libraries.h"
#include "image/tree_writer.h"
#include "json/decode.h"

namespace osb::image {
namespace {

namespace bj = json::bj;

constexpr size_t kHeadBytes = 16 << 10;       // per reading of an archive of which most is skipped
constexpr size_t kMaxMembers = 20'000;        // image archives have a handful per layer
constexpr size_t kMaxLooked = 4'000'000;      // entries of a root
constexpr uint64_t kHeadStream = 256u << 20;  // decompressed at most, to see the first name
constexpr char kSpooled[] = "archive";

// A file as libarchive reads it: content that nobody asks for is skipped, not read.
struct SeekingReader {
  ByteRange range;
  uint64_t at = 0;
  std::string buffer = std::string(kHeadBytes, '\0');

  static la_ssize_t on_read(struct archive*, void* self, const void** bytes) {
    auto& r = *static_cast<SeekingReader*>(self);
    size_t want = static_cast<size_t>(std::min<uint64_t>(r.buffer.size(), *r.range.size - r.at));
    ssize_t n = ::pread(r.range.fd, r.buffer.data(), want, static_cast<off_t>(r.range.offset + r.at));
    if (n < 0) return -1;
    r.at += static_cast<uint64_t>(n);
    *bytes = r.buffer.data();
    return n;
  }
  static la_int64_t on_skip(struct archive*, void* self, la_int64_t request) {
    auto& r = *static_cast<SeekingReader*>(self);
    uint64_t skipped =
        std::min<uint64_t>(static_cast<uint64_t>(std::max<la_int64_t>(request, 0)), *r.range.size - r.at);
    r.at += skipped;
    return static_cast<la_int64_t>(skipped);
  }
};

struct SourceReader {
  ByteSource& source;
  static la_ssize_t on_read(struct archive*, void* self, const void** bytes) {
    auto piece = static_cast<SourceReader*>(self)->source.next();
    if (!piece) return -1;
    *bytes = piece->data();
    return static_cast<la_ssize_t>(piece->size());
  }
};

using Reader = std::unique_ptr<struct archive, decltype(Libraries::archive_read_free)>;

Reader new_tar_reader() {
  const Libraries& lib = libraries();
  Reader reader(lib.archive_read_new(), lib.archive_read_free);
  lib.archive_read_support_format_tar(reader.get());
  lib.archive_read_support_format_empty(reader.get());
  return reader;
}

// How image archives begin, whoever wrote them. Names of a root do not look like this.
bool begins_image_archive(std::string_view name) {
  std::string_view first = name.substr(0, name.find('/'));
  if (first == "blobs" || first == "manifest.json" || first == "index.json" || first == "oci-layout" ||
      first == "repositories") {
    return true;
  }
  return is_hex_digest(first.substr(0, 64)) &&
         (first.size() == 64 || first.substr(64) == ".json" || first.substr(64) == ".tar");
}

Result<std::string> inspect_compressed(ByteRange range) {
  const Libraries& lib = libraries();
  LayerStream stream(range, kHeadStream);
  SourceReader source{stream};
  Reader reader = new_tar_reader();
  struct archive_entry* entry = nullptr;
  bool image =
      lib.archive_read_open(reader.get(), &source, nullptr, SourceReader::on_read, nullptr) == ARCHIVE_OK &&
      lib.archive_read_next_header(reader.get(), &entry) >= ARCHIVE_WARN;
  const char* path = image && entry ? lib.archive_entry_pathname(entry) : nullptr;
  auto name = path ? clean_entry_path(path) : Result<std::string>("");
  image = name && begins_image_archive(*name);
  return json::print(bj::object{{"kind", image ? "compressed" : "root"}});
}

Result<std::string> inspect_plain(ByteRange range) {
  const Libraries& lib = libraries();
  SeekingReader source{range};
  Reader reader = new_tar_reader();
  if (lib.archive_read_open2(reader.get(), &source, nullptr, SeekingReader::on_read, SeekingReader::on_skip,
                             nullptr) != ARCHIVE_OK) {
    return json::print(bj::object{{"kind", "root"}});  // unpacking says what is wrong with it
  }
  Members members;
  struct archive_entry* entry = nullptr;
  for (size_t i = 0; i < kMaxLooked && members.size() <= kMaxMembers; ++i) {
    if (lib.archive_read_next_header(reader.get(), &entry) < ARCHIVE_WARN) break;
    if (!entry) break;
    const char* path = lib.archive_entry_pathname(entry);
    auto name = path ? clean_entry_path(path) : Result<std::string>("");
    if (!name || name->empty()) continue;
    auto type = lib.archive_entry_filetype(entry);
    const char* link = lib.archive_entry_symlink(entry);
    Member member{static_cast<uint64_t>(lib.archive_filter_bytes(reader.get(), 0)),
                  static_cast<uint64_t>(std::max<int64_t>(0, lib.archive_entry_size(entry))), ""};
    if (type == AE_IFLNK && link) member = {0, 0, link};
    if (type == AE_IFREG || type == AE_IFLNK) members.insert_or_assign(std::move(*name), std::move(member));
  }
  // A root may have a manifest.json of its own, but no layers beside it.
  bool layers = std::ranges::any_of(members, [](const auto& named) {
    return named.first.starts_with("blobs/sha256/") || named.first.ends_with(".tar");
  });
  bool image = members.size() <= kMaxMembers && layers &&
               (members.contains("manifest.json") ||
                (members.contains("index.json") && members.contains("oci-layout")));
  bj::array list;
  if (image) {
    for (const auto& [name, member] : members)
      list.push_back(bj::array{name, member.offset, member.size, member.link});
  }
  return json::print(bj::object{{"kind", image ? "image" : "root"}, {"members", std::move(list)}});
}

void report_outcome(WorkerReport& report, const Result<std::string>& outcome) {
  if (outcome) {
    report.result(*outcome);
  } else {
    report.failure(outcome.error());
  }
  ::_exit(0);  // a reading thread may wait for input
}

Result<std::string> write_spooled(int input, int directory, uint64_t max_bytes, WorkerReport& report) {
  LayerStream stream({.fd = input, .offset = 0, .size = std::nullopt}, max_bytes);
  Fd out = TRY(open_at(directory, kSpooled, O_WRONLY | O_CREAT | O_EXCL, 0600));
  uint64_t bytes = 0;
  while (true) {
    auto piece = TRY(stream.next());
    if (piece.empty()) return std::string("done");
    TRY(write_all(out.get(), {piece.data(), piece.size()}));
    bytes += piece.size();
    if (bytes / (16u << 20) != (bytes - piece.size()) / (16u << 20)) report.progress(bytes, 0);
  }
}

}  // namespace

Result<std::string> inspect_bytes(ByteRange range) {
  char start[8] = {};
  ssize_t n =
      ::pread(range.fd, start, std::min<size_t>(sizeof start, *range.size), static_cast<off_t>(range.offset));
  if (n < 0) return fail_errno("read the archive");
  bool plain = detect_compression({start, static_cast<size_t>(n)}) == Compression::none;
  return plain ? inspect_plain(range) : inspect_compressed(range);
}

Result<Inspection> parse_inspection(std::string_view text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "inspection");
  std::string kind = field["kind"].required_string();
  Inspection out;
  if (kind == "image") out.kind = Inspection::Kind::image;
  if (kind == "compressed") out.kind = Inspection::Kind::compressed;
  for (const json::Field& item : field["members"].array().value_or(std::vector<json::Field>())) {
    auto parts = item.array().value_or(std::vector<json::Field>());
    if (parts.size() != 4 || out.members.size() > kMaxMembers) continue;
    int64_t offset = parts[1].integer().value_or(-1), size = parts[2].integer().value_or(-1);
    if (offset < 0 || size < 0) continue;
    out.members[parts[0].string().value_or("")] = {static_cast<uint64_t>(offset), static_cast<uint64_t>(size),
                                                   parts[3].string().value_or("")};
  }
  if (!issues.empty()) return fail(Code::internal, "the worker's report makes no sense");
  return out;
}

Result<Inspection> inspect(Store& store, int file, const WorkerWatch& watch) {
  struct stat info{};
  if (::fstat(file, &info) < 0) return fail_errno("look at the archive");
  std::string staged = TRY(store.stage());
  Cleanup undo;
  undo.push([&] { store.discard(staged); });
  WorkerOrder order;
  order.directory = staged;
  order.input = file;
  order.job = [&](int input, int, WorkerReport& report) {
    report_outcome(report,
                   inspect_bytes({.fd = input, .offset = 0, .size = static_cast<uint64_t>(info.st_size)}));
  };
  return parse_inspection(TRY(run_worker(order, watch)));
}

Result<Fd> spool(Store& store, int input, uint64_t max_bytes, const WorkerWatch& watch) {
  std::string staged = TRY(store.stage());
  Cleanup undo;
  undo.push([&] { store.discard(staged); });
  WorkerOrder order;
  order.directory = staged;
  order.input = input;
  order.max_file_bytes = max_bytes;
  order.job = [&](int in, int directory, WorkerReport& report) {
    report_outcome(report, write_spooled(in, directory, max_bytes, report));
  };
  TRY(run_worker(order, watch));
  Fd root = TRY(open_at(AT_FDCWD, staged, O_RDONLY | O_DIRECTORY));
  return open_beneath(root.get(), kSpooled, O_RDONLY);
}

}  // namespace osb::image
