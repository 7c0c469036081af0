#include "image/import.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <unistd.h>

#include "image/inspect.h"
#include "image/layout.h"
#include "image/pack.h"
#include "image/reference.h"
#include "sys/directory.h"

namespace osb::image {
namespace {

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
    ImageBuilder builder(store_, limits());
    builder.set_config(options_.config);
    TRY(builder.layer({.bytes = {.fd = packer.stream(), .offset = 0, .size = std::nullopt},
                       .diff_id = "",
                       .blob_digest = ""},
                      false, watch_of(1, 1)));
    // Only now is it known whether that was all; a layer without an image is collected again.
    TRY(packer.finish());
    return one(TRY(finish(builder, names_or({}))));
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
    ImageBuilder builder(store_, limits());
    builder.set_config(options_.config);
    ByteRange all{.fd = file.get(), .offset = 0, .size = static_cast<uint64_t>(info.st_size)};
    TRY(builder.layer({.bytes = all, .diff_id = "", .blob_digest = ""}, false, watch_of(1, 1)));
    return one(TRY(finish(builder, names_or({}))));
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
      ImageBuilder builder(store_, limits());
      builder.set_config(image.config);
      size_t count = image.layers.size();
      for (size_t i = 0; i < count; ++i) {
        TRY(in_context("layer " + std::to_string(i + 1) + " of " + std::to_string(count),
                       builder.layer(image.layers[i], true, watch_of(i + 1, count))));
      }
      out.push_back(TRY(finish(builder, names_or(image.names))));
    }
    return out;
  }

  std::vector<std::string> names_or(const std::vector<std::string>& own) const {
    if (!options_.names.empty()) return options_.names;
    if (!own.empty()) return own;
    return {options_.source == "-" ? "" : name_from_file(options_.source)};
  }

  ImageLimits limits() const {
    return {.max_bytes = options_.max_bytes, .max_entries = options_.max_entries};
  }

  WorkerWatch watch_of(size_t number, size_t count) const {
    WorkerWatch watch = watch_;
    watch.progress = [this, number, count](uint64_t bytes, uint64_t entries) {
      if (told_.progress) told_.progress(number, count, bytes, entries);
    };
    return watch;
  }

  Result<Imported> finish(ImageBuilder& builder, const std::vector<std::string>& names) const {
    apply(options_.changes, builder.config());
    return builder.finish(names);
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
  if (changes.cmd) config.cmd = *changes.cmd;
  for (const auto& [name, value] : changes.labels) config.labels.insert_or_assign(name, value);
  for (const std::string& port : changes.ports) {
    if (std::ranges::find(config.ports, port) == config.ports.end()) config.ports.push_back(port);
  }
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
