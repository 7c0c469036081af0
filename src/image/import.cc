#include "image/import.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "image/accounts.h"
#include "image/layer_import.h"
#include "image/pack.h"
#include "image/reference.h"

namespace osb::image {
namespace {

class Importer {
 public:
  Importer(Store& store, const ImportOptions& options, const ImportWatch& watch)
      : store_(store), options_(options), watch_(watch) {}

  Result<Imported> run() {
    struct stat info{};
    if (::stat(options_.source.c_str(), &info) < 0) return fail_errno(options_.source);
    if (S_ISDIR(info.st_mode)) {
      TRY(directory());
    } else if (S_ISREG(info.st_mode)) {
      TRY(archive());
    } else {
      return fail(Code::invalid_argument, options_.source + ": neither a directory nor a file");
    }
    return finish();
  }

 private:
  // A plain root.
  Result<void> directory() {
    image_.config = options_.config;
    Packer packer = TRY(Packer::start(options_.source));
    LayerSource source{.bytes = {.fd = packer.stream(), .offset = 0, .size = std::nullopt},
                       .diff_id = "",
                       .blob_digest = ""};
    auto layer = import(source, 1, 1, false);
    if (!layer) return std::unexpected(std::move(layer.error()));
    // The layer is in the store by now; without an image that names it, it is collected again.
    return in_context(options_.source, packer.finish());
  }

  Result<void> archive() {
    Fd file = TRY(open_at(AT_FDCWD, options_.source, O_RDONLY));
    image_.config = options_.config;
    LayerSource source{
        .bytes = {.fd = file.get(), .offset = 0, .size = std::nullopt}, .diff_id = "", .blob_digest = ""};
    return import(source, 1, 1, false);
  }

  Result<void> import(const LayerSource& source, size_t number, size_t count, bool whiteouts) {
    UnpackOptions unpack;
    unpack.max_bytes = options_.max_bytes - std::min(options_.max_bytes, image_.bytes);
    unpack.max_entries = options_.max_entries - std::min(options_.max_entries, image_.entries);
    unpack.whiteouts = whiteouts;
    WorkerWatch watch{.progress =
                          [&](uint64_t bytes, uint64_t entries) {
                            if (watch_.progress) watch_.progress(number, count, bytes, entries);
                          },
                      .cancel_fd = watch_.cancel_fd};
    return add(TRY(import_layer(store_, source, unpack, watch)));
  }

  Result<void> add(const Layer& layer) {
    if (layer.hides_all_below) image_.layers.clear();
    image_.layers.push_back(layer.digest);
    image_.bytes += layer.bytes;
    image_.entries += layer.entries;
    imported_.devices += layer.devices;
    imported_.xattrs += layer.xattrs;
    ++imported_.layers;
    return {};
  }

  Result<Imported> finish() {
    apply(options_.changes, image_.config);
    std::vector<std::string> layers;
    for (const std::string& digest : image_.layers) layers.push_back(store_.layer_path(digest));
    TRY(resolve_user(image_.config, TRY(read_from_layers(layers, "etc/passwd")),
                     TRY(read_from_layers(layers, "etc/group"))));
    image_.imported = wall_now();
    image_.id = compute_id(image_);
    imported_.id = image_.id;
    imported_.bytes = image_.bytes;
    imported_.entries = image_.entries;
    if (!options_.names.empty()) imported_.names = options_.names;
    if (imported_.names.empty()) imported_.names = {name_from_file(options_.source)};
    for (const std::string& name : imported_.names) TRY(in_context("name " + name, check_name(name)));
    TRY(store_.add(std::move(image_), imported_.names));
    return std::move(imported_);
  }

  Store& store_;
  const ImportOptions& options_;
  const ImportWatch& watch_;
  Image image_;
  Imported imported_;
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

Result<Imported> import_image(Store& store, const ImportOptions& options, const ImportWatch& watch) {
  auto imported = Importer(store, options, watch).run();
  // Also after a failure: layers that came before it, and what a replaced name leaves unused.
  auto collected = store.collect();
  if (imported && !collected) return std::unexpected(std::move(collected.error()));
  return imported;
}

}  // namespace osb::image
