#include "cli/images.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "cli/api_error.h"
#include "cli/table.h"
#include "image/import.h"
#include "image/libraries.h"
#include "image/reference.h"
#include "json/decode.h"
#include "launcher/identity.h"
#include "runtime/native/service.h"
#include "server/config.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

constexpr int kInterrupted = 130;
constexpr size_t kMaxConfig = 4 << 20;

struct Place {
  std::string state_dir, given;  // resolved, and as it was written
  server::NativeSection native;  // of the service
};

// The other commands go to a server, which may keep its images elsewhere.
void say_whose(const Place& place) {
  const char* server = ::getenv("OPEN_SANDBOX_DOMAIN");
  if (!server || !*server) return;
  fmt::print(stderr,
             "osb: these are the images of the service on this host with the state directory {}; "
             "OPEN_SANDBOX_DOMAIN ({}) has no effect on them\n",
             place.state_dir, server);
}

Result<Place> find_place(const ImageStore& store) {
  auto flag = store.config.empty() ? std::nullopt : std::optional(store.config);
  std::string path = server::config_path(flag, ::getenv);
  server::NativeSection native;
  auto text = read_file(path, kMaxConfig);
  if (text) {
    native = TRY(server::parse_config(*text, path, ::getenv)).native;
  } else if (flag || text.error().code != Code::not_found) {
    return std::unexpected(std::move(text.error()).in("read the configuration"));
  }
  if (!store.state_dir.empty()) native.state_dir = store.state_dir;
  if (store.state_dir.empty())
    native.state_dir = TRY(server::choose_state_dir(native, ::geteuid() == 0, ::getenv));
  if (!native.state_dir.starts_with('/'))
    return fail(Code::invalid_argument, "--state-dir must be an absolute path");
  std::string resolved = TRY(launcher::resolve_state_dir(native.state_dir));
  Place place{.state_dir = resolved, .given = native.state_dir, .native = std::move(native)};
  say_whose(place);
  return place;
}

// Unless it certainly is none: others may not look into one.
bool is_of_a_service(const std::string& state_dir) {
  auto identity = launcher::read_identity(state_dir);
  return identity || identity.error().code != Code::not_found;
}

Result<image::Store> open_store(const ImageStore& where) {
  Place place = TRY(find_place(where));
  image::Store::Options options;
  options.state_dir = place.state_dir;
  if (::geteuid() == 0) TRY(launcher::claim_state_dir(place.state_dir, place.given));
  options.service_gid = runtime::service_account(place.native.user, place.state_dir).gid;
  options.waiting = [] { fmt::print(stderr, "osb: another import is at work; waiting for it\n"); };
  options.lost = [](const std::string& name) {
    fmt::print(stderr,
               "osb: the image {} was not completely on disk when the host stopped; import it again\n", name);
  };
  return image::Store::open(std::move(options));
}

// SIGINT, SIGTERM and SIGHUP as something to poll, so that an import can tidy up behind itself.
Result<Fd> block_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, number);
  if (::sigprocmask(SIG_BLOCK, &signals, nullptr) < 0) return fail_errno("block signals");
  Fd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return fail_errno("signalfd");
  return fd;
}

// A full OCI configuration, or its "config" member alone.
Result<image::ImageConfig> read_config_file(const std::string& path) {
  auto text = TRY(read_file(path, kMaxConfig));
  auto value = TRY(in_context(path, json::parse(text)));
  const bj::value* config = &value;
  if (const auto* object = value.if_object()) {
    if (const bj::value* member = object->if_contains("config")) config = member;
  }
  return in_context(path, image::decode_oci_config(*config));
}

image::ConfigChanges changes_of(const ImportImageOptions& options) {
  image::ConfigChanges changes;
  changes.env = options.env;
  changes.user = options.user;
  changes.workdir = options.workdir;
  if (!options.entrypoint.empty()) changes.entrypoint = options.entrypoint;
  for (const auto& [name, value] : options.labels) changes.labels.insert_or_assign(name, value);
  return changes;
}

// One line that is written over, on a terminal only.
class ProgressLine {
 public:
  ProgressLine() : shown_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() { clear(); }
  void show(size_t layer, size_t layers, uint64_t bytes, uint64_t entries) {
    if (!shown_) return;
    std::string where = layers > 1 ? fmt::format("layer {} of {}: ", layer, layers) : "";
    fmt::print(stderr, "\r\x1b[K{}{}, {} entries", where, print_bytes(bytes), entries);
    std::fflush(stderr);
    dirty_ = true;
  }
  void clear() {
    if (dirty_) fmt::print(stderr, "\r\x1b[K");
    dirty_ = false;
  }

 private:
  bool shown_, dirty_ = false;
};

Result<std::vector<image::Imported>> run_import(const ImportImageOptions& options) {
  TRY(image::load_libraries());
  image::ImportOptions order;
  order.source = options.source;
  order.names = options.names;
  if (!options.config_file.empty()) order.config = TRY(read_config_file(options.config_file));
  order.changes = changes_of(options);
  if (options.max_bytes) order.max_bytes = *options.max_bytes;
  if (options.max_entries) order.max_entries = *options.max_entries;
  image::Store store = TRY(open_store(options.store));
  Fd signals = TRY(block_signals());
  ProgressLine line;
  image::ImportWatch watch;
  watch.cancel_fd = signals.get();
  if (!options.quiet) {
    watch.progress = [&](size_t layer, size_t layers, uint64_t bytes, uint64_t entries) {
      line.show(layer, layers, bytes, entries);
    };
  }
  return image::import_images(store, order, watch);
}

void print_imported(const image::Imported& imported) {
  std::string names;
  for (const std::string& name : imported.names) names += (names.empty() ? "" : ", ") + name;
  fmt::print("imported {} ({}, {} entries, {} layer{}{}) {}\n", names, print_bytes(imported.bytes),
             imported.entries, imported.layers, imported.layers == 1 ? "" : "s",
             imported.layers_known > 0 ? fmt::format(", {} known", imported.layers_known) : "",
             imported.id.substr(0, 12));
  if (imported.devices > 0) {
    fmt::print("  left out: {} device nodes; sandboxes get their own /dev\n", imported.devices);
  }
  if (imported.xattrs > 0) {
    fmt::print("  left out: {} extended attributes of kinds that sandboxes do not have\n", imported.xattrs);
  }
}

}  // namespace

int import_image(const ImportImageOptions& options) {
  auto imported = run_import(options);
  if (!imported) {
    bool interrupted = imported.error().code == Code::cancelled;
    print_error("osb", std::move(imported.error()).in("import " + options.source));
    return interrupted ? kInterrupted : 1;
  }
  for (const image::Imported& image : *imported) {
    if (options.quiet) {
      fmt::print("{}\n", image.id);
    } else {
      print_imported(image);
    }
  }
  return 0;
}

std::string image_table(const image::Index& index, const std::map<std::string, std::string>& directories,
                        WallTime now) {
  using Row = std::vector<std::string>;
  std::vector<Row> rows{{"NAME", "ID", "LAYERS", "SIZE", "AGE"},
                        {image::kHostImage, "(this host's /usr)", "-", "-", "-"}};
  for (const auto& [name, path] : directories) rows.push_back({name, "(" + path + ")", "-", "-", "-"});
  auto add = [&](const std::string& name, const image::Image& image) {
    auto age = std::chrono::duration_cast<std::chrono::seconds>(now - image.imported);
    rows.push_back({name, image.id.substr(0, 12), std::to_string(image.layers.size() + image.over.size()),
                    print_bytes(image.bytes), age.count() <= 0 ? "0s" : print_duration(age)});
  };
  for (const auto& [name, id] : index.names) add(name, index.images.at(id));
  for (const auto& [id, image] : index.images) {
    bool named = std::ranges::any_of(index.names, [&](const auto& pair) { return pair.second == id; });
    if (!named) add("(none, in use)", image);
  }
  return print_table(rows);
}

int list_images(const LsImagesOptions& options) {
  auto list = [&]() -> Result<void> {
    Place place = TRY(find_place(options.store));
    image::Index index = TRY(image::load_index(place.state_dir));
    if (index.images.empty() && !is_of_a_service(place.state_dir)) {
      std::string text = place.state_dir + " is not the state directory of a service";
      if (!options.store.state_dir.empty()) return fail(Code::not_found, text + "; check --state-dir");
      fmt::print(stderr, "osb: {} yet; --config or --state-dir name another\n", text);
    }
    if (options.json) {
      bj::array records;
      for (const auto& [id, image] : index.images) {
        bj::array names;
        for (const auto& [name, named] : index.names) {
          if (named == id) names.emplace_back(name);
        }
        bj::value record = image::to_json(image);
        record.as_object()["names"] = std::move(names);
        records.push_back(std::move(record));
      }
      fmt::print("{}\n", json::print(records));
    } else {
      fmt::print("{}", image_table(index, place.native.images, wall_now()));
    }
    return {};
  };
  if (auto listed = list(); !listed) {
    print_error("osb", listed.error());
    return 1;
  }
  return 0;
}

int remove_images(const RmImagesOptions& options) {
  auto store = open_store(options.store);
  if (!store) {
    print_error("osb", store.error());
    return 1;
  }
  int status = 0;
  using InUse = image::Store::InUse;
  for (const std::string& name : options.names) {
    auto removed = store->remove(name, options.force ? InUse::keep_until_unused : InUse::refuse);
    if (removed) {
      fmt::print("{}\n", name);
    } else {
      print_error("osb", removed.error());
      status = 1;
    }
  }
  return status;
}

}  // namespace osb::cli
