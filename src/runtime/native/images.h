#pragma once

// Image names and the directories behind them.
//
// `host` is the zero-download image: the host's /usr and a curated /etc, never the host's /. Other names come
// from the configuration (an unpacked root directory each) and from what was imported (osb images), which may
// change while the server runs.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "image/index.h"
#include "image/pull_reference.h"

namespace osb::runtime {

// What a sandbox's root is made of. Paths on the host.
struct ImageRoot {
  std::vector<std::string> lowers;  // topmost first
  // Writable trees besides the root: mount point -> layer of the host.
  std::map<std::string, std::string> trees;
  // Read-only views: mount point -> path of the host.
  std::map<std::string, std::string> views;
  std::string id;                              // digest of an imported image; "" for others
  bool pulled = false;                         // it came from a registry, which may have a newer one
  image::ImageConfig config;                   // what the image says about its processes
  std::vector<image::SandboxLayer> over = {};  // what a sandbox had changed, over all that; topmost first
};

struct ImageSettings {
  std::string state_dir;
  std::string host_version;                          // what write_host_image() returned
  std::map<std::string, std::string> directories;    // name -> root directory
  std::vector<std::string> host_paths;               // shown read-only in `host`
  std::map<std::string, std::string> aliases;        // name or pattern -> local name
  std::string default_registry = image::kDockerHub;  // of names without a host
};

class Images {
 public:
  explicit Images(ImageSettings settings) : settings_(std::move(settings)), imported_(settings_.state_dir) {}

  // Code::not_found, with the names that exist and the remedy. `id`: the imported image of that digest,
  // whatever it is called by now.
  // `owner`: who asks; others' images of sandboxes are not there for them.
  Result<ImageRoot> find(const std::string& asked, const std::string& owner = "", const std::string& id = "");
  // Of an image without a digest: `host`, or the configured name that serves what was asked for. "" for
  // others.
  std::string base_of(const std::string& asked) const;
  std::vector<std::string> directories() const;  // the names that it may answer, `host` first
  // Every directory of the host that a plan may name, for the launcher's settings.
  std::vector<std::string> sources() const;

 private:
  Result<ImageRoot> imported_root(const image::Image& found) const;
  std::optional<ImageRoot> find_configured(const std::string& name) const;
  // Nothing: there is none of that name.
  Result<std::optional<ImageRoot>> find_local(const std::string& name, const std::string& owner,
                                              const image::Index& imported) const;

  ImageSettings settings_;
  image::IndexReader imported_;
};

// Writes the parts of the host image that are ours, unless the host has not changed since: empty private
// directories, a curated /etc, and the layer with hosts, resolv.conf and hostname that lies over every image.
// As root, before the launcher starts. Returns the version to use from now on; sandboxes that run keep the
// one they were started with.
Result<std::string> write_host_image(const std::string& state_dir);

}  // namespace osb::runtime
