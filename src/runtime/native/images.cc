#include "runtime/native/images.h"

#include <sys/stat.h>
#include <unistd.h>

namespace osb::runtime {
namespace {

constexpr char kHost[] = "host";

// "/bin" on hosts where it is a directory of its own and not a link into /usr.
bool is_own_directory(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

constexpr const char* kSystemDirectories[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

}  // namespace

Result<ImageRoot> Images::find(const std::string& name) const {
  std::string ours = settings_.state_dir + "/images/" + settings_.host_version;
  ImageRoot root;
  root.lowers.push_back(ours + "/common");
  if (name == kHost) {
    root.lowers.push_back(ours + "/root");
    root.trees["/usr"] = "/usr";
    for (const char* dir : kSystemDirectories) {
      if (is_own_directory(dir)) root.trees[dir] = dir;
    }
    for (const std::string& path : settings_.host_paths) root.views[path] = path;
    return root;
  }
  auto found = settings_.directories.find(name);
  if (found != settings_.directories.end()) {
    root.lowers.push_back(found->second);
    return root;
  }
  std::string known = kHost;
  for (const auto& [other, path] : settings_.directories) known += ", " + other;
  return fail(Code::not_found, "image " + name + " is not on this host; use one of: " + known +
                                   ", or add it to [native.images] in the configuration");
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
