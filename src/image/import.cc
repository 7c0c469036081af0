#include "image/import.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <unistd.h>

#include <algorithm>

#include "image/accounts.h"
#include "image/inspect.h"
#include "image/layer_import.h"
#include "image/layout.h"
#include "image/pack.h"
#include "image/reference.h"
#include "sys/directory.h"

namespace osb::image {
namespace {

// Builds one image.
class Builder {
 public:
  Builder(Store& store, const ImportOptions& options, const WorkerWatch& watch, const ImportWatch& told)
      : store_(store), options_(options), watch_(watch), told_(told) {}

  void set_config(const ImageConfig& config) { image_.config = config; }

  Result<void> layer(const LayerSource& source, size_t number, size_t count, bool whiteouts) {
    if (!source.diff_id.empty() && store_.has_layer(source.diff_id)) {
      ++imported_.layers_known;
      add(TRY(known_layer(store_, source.diff_id)));
      return {};
    }
    UnpackOptions unpack;
    unpack.max_bytes = options_.max_bytes - std::min(options_.max_bytes, imported_.bytes);
    unpack.max_entries = options_.max_entries - std::min(options_.max_entries, imported_.entries);
    unpack.whiteouts = whiteouts;
    WorkerWatch watch = watch_;
    watch.progress = [&](uint64_t bytes, uint64_t entries) {
      if (told_.progress) told_.progress(number, count, bytes, entries);
    };
    add(TRY(import_layer(store_, source, unpack, watch)));
    return {};
  }

  Result<Imported> finish(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (name.empty())
        return fail(Code::invalid_argument, "it says no name\n  remedy: give one with --name");
      TRY(in_context("name " + name, check_name(name)));
    }
    apply(options_.changes, image_.config);
    std::vector<std::string> layers;
    for (const std::string& digest : image_.layers) layers.push_back(store_.layer_path(digest));
    auto passwd = TRY(read_from_layers(layers, "etc/passwd")),
         group = TRY(read_from_layers(layers, "etc/group"));
    TRY(resolve_user(image_.config, passwd, group));
    image_.imported = wall_now();
    image_.bytes = imported_.bytes;
    image_.entries = imported_.entries;
    image_.id = imported_.id = compute_id(image_);
    imported_.names = names;
    TRY(store_.add(std::move(image_), names));
    return std::move(imported_);
  }

 private:
  void add(const Layer& layer) {
    if (layer.hides_all_below) image_.layers.clear();
    // A layer that comes again (empty ones often do) hides itself further down, and an overlay takes none
    // twice.
    std::erase(image_.layers, layer.digest);
    image_.layers.push_back(layer.digest);
    imported_.bytes += layer.bytes;
    imported_.entries += layer.entries;
    imported_.devices += layer.devices;
    imported_.xattrs += layer.xattrs;
    ++imported_.layers;
  }

  Store& store_;
  const ImportOptions& options_;
  const WorkerWatch& watch_;
  const ImportWatch& told_;
  Image image_;
  Imported imported_;
};

class Importer {
 public:
  Importer(Store& store, const ImportOptions& options, const ImportWatch& told)
      : store_(store), options_(options), told_(told), watch_{.progress = {}, .cancel_fd = told.cancel_fd} {
    watch_.progress = [this](uint64_t bytes, uint64_t entries) {
      if (told_.progress) told_.progress(1, 1, bytes, entries);
    };
  }

  Result<std::vector<Imported>> run() {
    // Before the work, not after it.
    for (const std::string& name : options_.names) TRY(in_context("name " + name, check_name(name)));
    if (options_.source == "-") return archive(TRY(spool(store_, STDIN_FILENO, spooled_bytes(), watch_)));
    struct stat info{};
    if (::stat(options_.source.c_str(), &info) < 0) return fail_errno("look at it");
    if (S_ISDIR(info.st_mode)) return directory();
    if (S_ISREG(info.st_mode)) return archive(TRY(open_at(AT_FDCWD, options_.source, O_RDONLY)));
    return fail(Code::invalid_argument, "neither a directory nor a file");
  }

 private:
  uint64_t spooled_bytes() const {
    UnpackOptions limits;
    limits.max_bytes = options_.max_bytes;
    limits.max_entries = options_.max_entries;
    return max_stream_bytes(limits);
  }

  Result<std::vector<Imported>> directory() {
    Fd dir = TRY(open_at(AT_FDCWD, options_.source, O_RDONLY | O_DIRECTORY));
    struct stat info{};
    bool layout = ::fstatat(dir.get(), "oci-layout", &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                  ::fstatat(dir.get(), "index.json", &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (layout) return images(ArchiveFiles::of_directory(std::move(dir)));
    if (TRY(sys::names_in(dir.get())).empty()) {
      return fail(
          Code::invalid_argument,
          "the directory is empty, and no program could run in such an image\n  remedy: name the root "
          "directory of a system, with its bin, usr and lib");
    }
    Packer packer = TRY(Packer::start(options_.source));
    Builder builder(store_, options_, watch_, told_);
    builder.set_config(options_.config);
    TRY(builder.layer({.bytes = {.fd = packer.stream(), .offset = 0, .size = std::nullopt},
                       .diff_id = "",
                       .blob_digest = ""},
                      1, 1, false));
    // Only now is it known whether that was all; a layer without an image is collected again.
    TRY(packer.finish());
    return one(TRY(builder.finish(names_or({}))));
  }

  Result<std::vector<Imported>> archive(Fd file) {
    Inspection found = TRY(inspect(store_, file.get(), watch_));
    if (found.kind == Inspection::Kind::compressed) {
      file = TRY(spool(store_, file.get(), spooled_bytes(), watch_));
      found = TRY(inspect(store_, file.get(), watch_));
    }
    if (found.kind == Inspection::Kind::image) {
      return images(TRY(ArchiveFiles::of_archive(std::move(file), std::move(found.members))));
    }
    struct stat info{};
    if (::fstat(file.get(), &info) < 0) return fail_errno("look at it");
    Builder builder(store_, options_, watch_, told_);
    builder.set_config(options_.config);
    ByteRange all{.fd = file.get(), .offset = 0, .size = static_cast<uint64_t>(info.st_size)};
    TRY(builder.layer({.bytes = all, .diff_id = "", .blob_digest = ""}, 1, 1, false));
    return one(TRY(builder.finish(names_or({}))));
  }

  Result<std::vector<Imported>> images(ArchiveFiles files) {
    auto archived = TRY(read_layout(files));
    if (archived.size() > 1 && !options_.names.empty()) {
      return fail(Code::invalid_argument, "the archive has " + std::to_string(archived.size()) +
                                              " images: they cannot all get the name " +
                                              options_.names.front());
    }
    std::vector<Imported> out;
    for (const ArchivedImage& image : archived) {
      Builder builder(store_, options_, watch_, told_);
      builder.set_config(image.config);
      size_t count = image.layers.size();
      for (size_t i = 0; i < count; ++i) {
        TRY(in_context("layer " + std::to_string(i + 1) + " of " + std::to_string(count),
                       builder.layer(image.layers[i], i + 1, count, true)));
      }
      out.push_back(TRY(builder.finish(names_or(image.names))));
    }
    return out;
  }

  std::vector<std::string> names_or(const std::vector<std::string>& own) const {
    if (!options_.names.empty()) return options_.names;
    if (!own.empty()) return own;
    return {options_.source == "-" ? "" : name_from_file(options_.source)};
  }

  static std::vector<Imported> one(Imported imported) {
    std::vector<Imported> out;
    out.push_back(std::move(imported));
    return out;
  }

  Store& store_;
  const ImportOptions& options_;
  const ImportWatch& told_;
  WorkerWatch watch_;
};

}  // namespace

void apply(const ConfigChanges& changes, ImageConfig& config) {
  for (const auto& [name, value] : changes.env) {
    std::erase_if(config.env, [&](const auto& earlier) { return earlier.first == name; });
    config.env.emplace_back(name, value);
  }
  if (changes.user) config.user = *changes.user;
  if (changes.workdir) config.workdir = *changes.workdir;
  if (changes.entrypoint) {
    config.entrypoint = *changes.entrypoint;
    config.cmd.clear();  // they were arguments of another program
  }
  for (const auto& [name, value] : changes.labels) config.labels.insert_or_assign(name, value);
}

Result<std::vector<Imported>> import_images(Store& store, const ImportOptions& options,
                                            const ImportWatch& watch) {
  auto imported = Importer(store, options, watch).run();
  // Also after a failure: layers that came before it, and what a replaced name leaves unused.
  auto collected = store.collect();
  if (imported && !collected) return std::unexpected(std::move(collected.error()));
  store.settle_in_background();
  return imported;
}

}  // namespace osb::image
