#include "image/layer_pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <memory>

#include "base/hex.h"
#include "base/strings.h"
#include "image/digest.h"
#include "image/tree_packer.h"
#include "image/unpack.h"
#include "sys/directory.h"

namespace osb::image {
namespace {

constexpr char kOpaqueAttribute[] = "trusted.overlay.opaque";
constexpr int kMaxDepth = 240;
constexpr int kBlock = 256 << 10;
// Twice as fast as the usual 6, for a few hundredths more bytes.
constexpr char kLevel[] = "4";
constexpr uint64_t kToldEvery = 8 << 20;
constexpr std::string_view kCompressions[] = {"none", "gzip", "zstd", "xz"};

const char* attribute_of(FormKind kind) {
  return kind == FormKind::came ? "trusted.opensandbox.came" : "trusted.opensandbox.packed";
}

// Rights held here: root's, because nobody else can read these marks. Nothing else is read, no link is
// followed, and only root could change the tree.
Result<void> find_opaque(int dir, const std::string& path, int depth, std::set<std::string>& out) {
  if (depth > kMaxDepth) return fail(Code::too_large, path + ": deeper than 240 directories");
  char value = 'n';
  if (::fgetxattr(dir, kOpaqueAttribute, &value, 1) == 1 && value == 'y') out.insert(path);
  for (const std::string& name : TRY(sys::names_in(dir))) {
    auto below = open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!below && (below.error().sys_errno == ENOTDIR || below.error().sys_errno == ELOOP)) continue;
    if (!below) return std::unexpected(std::move(below.error()));
    TRY(find_opaque(below->get(), path.empty() ? name : path + "/" + name, depth + 1, out));
  }
  return {};
}

using Writing = std::unique_ptr<struct archive, int (*)(struct archive*)>;

// Tar goes in at one end, hashed; what comes out compressed is hashed, too, and written.
class Pipeline {
 public:
  Pipeline(int file, WorkerReport& report) : file_(file), report_(report) {}

  Result<PackedForm> run(int directory, const PackRules& rules) {
    TRY(open());
    auto packed = pack_tree(tar_.get(), directory, rules);
    if (error_) return std::unexpected(std::move(*error_));
    if (!packed) return std::unexpected(std::move(packed.error()));
    bool closed = lib_.archive_write_close(tar_.get()) == ARCHIVE_OK &&
                  lib_.archive_write_close(compressor_.get()) == ARCHIVE_OK;
    if (error_) return std::unexpected(std::move(*error_));
    if (!closed) return fail(Code::internal, "cannot end the archive");
    return PackedForm{blob_.hex(), size_, diff_.hex(), Compression::gzip};
  }

 private:
  Result<void> open() {
    // Otherwise the current time would be in it.
    bool set =
        lib_.archive_write_add_filter_gzip(compressor_.get()) == ARCHIVE_OK &&
        lib_.archive_write_set_filter_option(compressor_.get(), "gzip", "timestamp", nullptr) == ARCHIVE_OK &&
        lib_.archive_write_set_filter_option(compressor_.get(), "gzip", "compression-level", kLevel) ==
            ARCHIVE_OK &&
        lib_.archive_write_set_format_raw(compressor_.get()) == ARCHIVE_OK &&
        lib_.archive_write_set_format_pax_restricted(tar_.get()) == ARCHIVE_OK;
    for (struct archive* one : {compressor_.get(), tar_.get()}) {
      lib_.archive_write_set_bytes_per_block(one, kBlock);
      lib_.archive_write_set_bytes_in_last_block(one, 1);
    }
    set = set &&
          lib_.archive_write_open(compressor_.get(), this, nullptr, on_compressed, nullptr) == ARCHIVE_OK &&
          lib_.archive_write_open(tar_.get(), this, nullptr, on_tar, nullptr) == ARCHIVE_OK;
    std::unique_ptr<struct archive_entry, decltype(lib_.archive_entry_free)> entry(lib_.archive_entry_new(),
                                                                                   lib_.archive_entry_free);
    lib_.archive_entry_set_filetype(entry.get(), S_IFREG);
    if (!set || lib_.archive_write_header(compressor_.get(), entry.get()) != ARCHIVE_OK)
      return fail(Code::internal, "cannot begin an archive");
    return {};
  }

  static la_ssize_t on_tar(struct archive*, void* self, const void* bytes, size_t size) {
    return static_cast<Pipeline*>(self)->take_tar({static_cast<const char*>(bytes), size});
  }
  static la_ssize_t on_compressed(struct archive*, void* self, const void* bytes, size_t size) {
    return static_cast<Pipeline*>(self)->take_compressed({static_cast<const char*>(bytes), size});
  }

  la_ssize_t take_tar(std::string_view bytes) {
    tar_bytes_ += bytes.size();
    if (tar_bytes_ > max_stream_bytes({})) {
      error_ = Error{Code::too_large, 0, "the layer is larger than layers may be"};
      return -1;
    }
    diff_.add(bytes);
    if (lib_.archive_write_data(compressor_.get(), bytes.data(), bytes.size()) < 0) return -1;
    if (tar_bytes_ - told_ >= kToldEvery) {
      told_ = tar_bytes_;
      report_.progress(tar_bytes_, 0);
    }
    return static_cast<la_ssize_t>(bytes.size());
  }

  la_ssize_t take_compressed(std::string_view bytes) {
    blob_.add(bytes);
    size_ += bytes.size();
    if (auto written = write_all(file_, bytes); !written) {
      error_ = std::move(written.error()).in("write the packed layer");
      return -1;
    }
    return static_cast<la_ssize_t>(bytes.size());
  }

  const Libraries& lib_ = libraries();
  int file_;
  WorkerReport& report_;
  // Before the archives, which may still write while they are freed.
  Sha256 diff_, blob_;
  uint64_t size_ = 0, tar_bytes_ = 0, told_ = 0;
  std::optional<Error> error_;
  Writing compressor_{lib_.archive_write_new(), lib_.archive_write_free},
      tar_{lib_.archive_write_new(), lib_.archive_write_free};
};

}  // namespace

std::string encode(const PackedForm& form) {
  return form.digest + " " + std::to_string(form.size) + " " + form.diff_id + " " +
         std::string(kCompressions[static_cast<size_t>(form.compression)]);
}

std::optional<PackedForm> parse_form(std::string_view text) {
  auto words = split(text, ' ');
  if (words.size() != 4 || !is_hex_digest(words[0]) || !is_hex_digest(words[2])) return std::nullopt;
  auto size = parse_number<uint64_t>(words[1]);
  if (!size) return std::nullopt;
  for (size_t i = 0; i < std::size(kCompressions); ++i) {
    if (kCompressions[i] == words[3])
      return PackedForm{std::string(words[0]), *size, std::string(words[2]), static_cast<Compression>(i)};
  }
  return std::nullopt;
}

std::string media_type_of(Compression compression) {
  std::string type = "application/vnd.oci.image.layer.v1.tar";
  if (compression == Compression::none) return type;
  return type + "+" + std::string(kCompressions[static_cast<size_t>(compression)]);
}

Result<PackedForm> pack_layer(const std::string& layer, int file, const WorkerWatch& watch) {
  Fd dir = TRY(open_at(AT_FDCWD, layer, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  PackRules rules{.as_layer = true};
  TRY(find_opaque(dir.get(), "", 0, rules.opaque));
  WorkerOrder order;
  order.directory = layer;
  order.read_only = true;
  order.input = file;
  order.max_file_bytes = max_stream_bytes({});
  order.job = [&](int out, int directory, WorkerReport& report) {
    auto packed = Pipeline(out, report).run(directory, rules);
    if (packed) report.result(encode(*packed));
    if (!packed) report.failure(packed.error());
  };
  auto form = parse_form(TRY(run_worker(order, watch)));
  struct stat info{}, before{}, now{};
  // The worker may be somebody else's by now. Its digests cannot be checked without reading everything again:
  // the registry does that.
  if (!form || ::fstat(file, &info) < 0 || static_cast<uint64_t>(info.st_size) != form->size)
    return fail(Code::internal, "the worker's report makes no sense");
  // Whoever removes a layer moves it away first. What is still in its place was whole while it was read.
  if (::fstat(dir.get(), &before) < 0 || ::lstat(layer.c_str(), &now) < 0 || before.st_ino != now.st_ino ||
      before.st_dev != now.st_dev)
    return fail(Code::wrong_state, "it was removed while it was packed");
  return *form;
}

std::optional<PackedForm> known_form(const std::string& layer, FormKind kind) {
  char value[256];
  ssize_t n = ::lgetxattr(layer.c_str(), attribute_of(kind), value, sizeof value);
  return n <= 0 ? std::nullopt : parse_form(std::string_view(value, static_cast<size_t>(n)));
}

Result<void> note_form(const std::string& layer, FormKind kind, const PackedForm& form) {
  std::string text = encode(form);
  if (::lsetxattr(layer.c_str(), attribute_of(kind), text.data(), text.size(), 0) < 0)
    return fail_errno("note what a layer is in registries");
  return {};
}

}  // namespace osb::image
