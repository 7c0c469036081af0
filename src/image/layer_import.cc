#include "image/layer_import.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "base/cleanup.h"
#include "base/strings.h"
#include "image/digest.h"
#include "image/layer_pack.h"
#include "json/decode.h"

namespace osb::image {
namespace {

namespace bj = json::bj;

constexpr char kOpaqueAttribute[] = "trusted.overlay.opaque";
constexpr char kSizeAttribute[] = "trusted.opensandbox.size";  // "<bytes> <entries>"

// Confined, from here to the end of the process.
void unpack_confined(ByteRange range, UnpackOptions options, int directory, WorkerReport& report) {
  options.progress = [&](uint64_t bytes, uint64_t entries) { report.progress(bytes, entries); };
  LayerStream stream(range, max_stream_bytes(options));
  auto done = unpack(stream, directory, options);
  if (!done) {
    report.failure(done.error());
    ::_exit(0);  // the thread that reads may wait for input that never comes
  }
  bj::array opaque;
  for (const std::string& path : done->opaque) opaque.emplace_back(path);
  report.result(json::print(bj::object{{"diff_id", stream.diff_id()},
                                       {"blob", stream.blob_digest()},
                                       {"bytes", done->bytes},
                                       {"entries", done->entries},
                                       {"devices", done->devices},
                                       {"xattrs", done->xattrs},
                                       {"opaque", std::move(opaque)}}));
}

struct Verdict {
  Layer layer;
  std::string blob;
  std::vector<std::string> opaque;
};

// The worker may be somebody else's by now: types and digests are checked, numbers are only shown.
Result<Verdict> parse_verdict(std::string_view text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "report");
  auto number = [&](const char* name) {
    return static_cast<uint64_t>(std::max<int64_t>(0, field[name].required_integer()));
  };
  Verdict verdict;
  verdict.layer.digest = field["diff_id"].required_string();
  verdict.blob = field["blob"].required_string();
  verdict.layer.bytes = number("bytes");
  verdict.layer.entries = number("entries");
  verdict.layer.devices = number("devices");
  verdict.layer.xattrs = number("xattrs");
  verdict.opaque = field["opaque"].string_list().value_or(std::vector<std::string>());
  if (!issues.empty() || !is_hex_digest(verdict.layer.digest) || !is_hex_digest(verdict.blob)) {
    return fail(Code::internal, "the worker's report makes no sense");
  }
  return verdict;
}

Result<void> check_digests(const LayerSource& source, const Verdict& verdict) {
  auto differs = [](const std::string& wanted, const std::string& found) {
    return !wanted.empty() && wanted != found;
  };
  if (differs(source.blob_digest, verdict.blob)) {
    return fail(Code::corrupt, "its bytes are not those that its digest promises: sha256:" + verdict.blob);
  }
  if (differs(source.diff_id, verdict.layer.digest)) {
    return fail(Code::corrupt,
                "it decompresses to something else than the image says: sha256:" + verdict.layer.digest);
  }
  return {};
}

Result<void> mark(const std::string& staged, const Verdict& verdict) {
  Fd root = TRY(open_at(AT_FDCWD, staged, O_RDONLY | O_DIRECTORY));
  for (const std::string& path : verdict.opaque) {
    Fd dir = TRY(path.empty() ? open_at(root.get(), ".", O_RDONLY | O_DIRECTORY)
                              : open_beneath(root.get(), path, O_RDONLY | O_DIRECTORY));
    if (::fsetxattr(dir.get(), kOpaqueAttribute, "y", 1, 0) < 0)
      return fail_errno("hide what lies below " + path);
  }
  std::string size = std::to_string(verdict.layer.bytes) + " " + std::to_string(verdict.layer.entries);
  if (::fsetxattr(root.get(), kSizeAttribute, size.data(), size.size(), 0) < 0)
    return fail_errno("note the layer's size");
  return {};
}

// What the layer is in a registry: where it came from one, or goes to one, it need not be packed again.
Result<void> note_origin(const std::string& staged, const LayerSource& source, const Verdict& verdict) {
  if (!source.bytes.size) return {};  // a stream that is gone
  char start[8];
  ssize_t n = ::pread(source.bytes.fd, start, sizeof start, static_cast<off_t>(source.bytes.offset));
  if (n < 0) return fail_errno("look at the layer");
  return note_form(staged, FormKind::came,
                   {verdict.blob, *source.bytes.size, verdict.layer.digest,
                    detect_compression(std::string_view(start, static_cast<size_t>(n)))});
}

}  // namespace

Result<Layer> known_layer(const Store& store, const std::string& digest) {
  return layer_at(store.layer_path(digest), digest);
}

Result<Layer> layer_at(const std::string& path, const std::string& digest) {
  Layer layer{.digest = digest};
  Fd root = TRY(open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
  char value[64];
  layer.hides_all_below = ::fgetxattr(root.get(), kOpaqueAttribute, value, sizeof value) == 1;
  ssize_t n = ::fgetxattr(root.get(), kSizeAttribute, value, sizeof value);
  auto words = split(std::string_view(value, static_cast<size_t>(std::max<ssize_t>(n, 0))), ' ');
  if (words.size() == 2) {
    layer.bytes = parse_number<uint64_t>(words[0]).value_or(0);
    layer.entries = parse_number<uint64_t>(words[1]).value_or(0);
  }
  return layer;
}

Result<Layer> import_layer(Store& store, const LayerSource& source, const UnpackOptions& options,
                           const WorkerWatch& watch) {
  std::string staged = TRY(store.stage());
  Cleanup undo;
  undo.push([&] { store.discard(staged); });
  WorkerOrder order;
  order.directory = staged;
  order.input = source.bytes.fd;
  order.max_file_bytes = options.max_bytes;
  order.job = [&](int input, int directory, WorkerReport& report) {
    ByteRange range = source.bytes;
    range.fd = input;
    unpack_confined(range, options, directory, report);
  };
  Verdict verdict = TRY(parse_verdict(TRY(run_worker(order, watch))));
  TRY(check_digests(source, verdict));
  TRY(mark(staged, verdict));
  TRY(note_origin(staged, source, verdict));
  TRY(store.commit_layer(staged, verdict.layer.digest));
  undo.release();
  Layer layer = TRY(known_layer(store, verdict.layer.digest));
  layer.devices = verdict.layer.devices;
  layer.xattrs = verdict.layer.xattrs;
  return layer;
}

}  // namespace osb::image
