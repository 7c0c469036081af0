#include "runtime/native/images.h"

#include <sys/stat.h>
#include <unistd.h>

#include "image/reference.h"

namespace osb::runtime {
namespace {

constexpr size_t kShownNames = 20;

// "/bin" on hosts where it is a directory of its own and not a link into /usr.
bool is_own_directory(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

constexpr const char* kSystemDirectories[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

}  // namespace

std::optional<ImageRoot> Images::find_configured(const std::string& name) const {
  std::string ours = settings_.state_dir + "/images/" + settings_.host_version;
  ImageRoot root;
  root.lowers.push_back(ours + "/common");
  if (name == image::kHostImage) {
    root.lowers.push_back(ours + "/root");
    root.trees["/usr"] = "/usr";
    for (const char* dir : kSystemDirectories) {
      if (is_own_directory(dir)) root.trees[dir] = dir;
    }
    for (const std::string& path : settings_.host_paths) root.views[path] = path;
    return root;
  }
  if (auto found = settings_.directories.find(name); found != settings_.directories.end()) {
    root.lowers.push_back(found->second);
    return root;
  }
  return std::nullopt;
}

Result<std::optional<ImageRoot>> Images::find_local(const std::string& name, const std::string& owner,
                                                    const image::Index& imported) const {
  if (auto configured = find_configured(name)) return configured;
  const image::Image* found = imported.find(name);
  if (!found || !found->is_for(owner)) return std::nullopt;
  return TRY(imported_root(*found));
}

Result<ImageRoot> Images::imported_root(const image::Image& found) const {
  ImageRoot root;
  if (found.base.empty()) {
    root.lowers.push_back(settings_.state_dir + "/images/" + settings_.host_version + "/common");
  } else {
    auto base = find_configured(found.base);
    if (!base)
      return fail(Code::not_found, "the image was made of a sandbox over " + found.base +
                                       ", which is not in the configuration any more");
    root = std::move(*base);
  }
  root.over = found.over;
  for (auto layer = found.layers.rbegin(); layer != found.layers.rend(); ++layer) {
    root.lowers.push_back(settings_.state_dir + "/images/store/layers/" + *layer);
  }
  root.id = found.id;
  root.config = found.config;
  root.pulled = !found.manifest.empty();
  return root;
}

std::string Images::base_of(const std::string& asked) const {
  for (const std::string& name : image::candidates(asked, settings_.aliases)) {
    if (name == image::kHostImage || settings_.directories.contains(name)) return name;
  }
  return "";
}

std::vector<std::string> Images::directories() const {
  std::vector<std::string> names = {image::kHostImage};
  for (const auto& [name, path] : settings_.directories) names.push_back(name);
  return names;
}

Result<ImageRoot> Images::find(const std::string& asked, const std::string& owner, const std::string& id) {
  auto imported = TRY(imported_.current());
  if (!id.empty()) {
    auto found = imported->images.find(id);
    if (found != imported->images.end()) return imported_root(found->second);
    return fail(Code::not_found, "the image " + asked.substr(0, 300) +
                                     " that the snapshot was made over is not on this host any more; import "
                                     "it again: osb images import");
  }
  for (const std::string& name : image::candidates(asked, settings_.aliases)) {
    if (auto root = TRY(find_local(name, owner, *imported))) return std::move(*root);
  }
  // What was pulled has its full name.
  if (auto reference = image::parse_pull_reference(asked, settings_.default_registry)) {
    if (auto root = TRY(find_local(reference->name(), owner, *imported))) return std::move(*root);
  }
  std::string known = image::kHostImage;
  for (const auto& [other, path] : settings_.directories) known += ", " + other;
  size_t shown = 0;
  for (const auto& [other, named] : imported->names) {
    if (!imported->images.at(named).is_for(owner)) continue;
    known += ++shown > kShownNames ? ", ..." : ", " + other;
    if (shown > kShownNames) break;
  }
  return fail(Code::not_found,
              "image " + asked.substr(0, 300) + " is not on this host; use one of: " + known +
                  "; or bring it here with: osb images import ARCHIVE --name " + asked.substr(0, 300));
}

std::vector<std::string> Images::sources() const {
  std::vector<std::string> out = {"/usr"};
  for (const char* dir : kSystemDirectories) {
    if (is_own_directory(dir)) out.emplace_back(dir);
  }
  for (const auto& [name, path] : settings_.directories) out.push_back(path);
  out.insert(out.end(), settings_.host_paths.begin(), settings_.host_paths.end());
  return out;
}

}  // namespace osb::runtime
