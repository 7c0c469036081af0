#pragma once

// The body with which an engine is asked for a container: a pure function of what a sandbox is to be.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "docker/answers.h"
#include "docker/container_labels.h"
#include "runtime/spec.h"

namespace osb::docker {

// What is published where ContainerRules::publish says so: execd, and the usual port of a web server.
inline constexpr uint16_t kPublished[] = {44772, 8080};

// A network mode of containers: none of their own.
inline constexpr char kHostNetwork[] = "host";

// Something of the host or of the engine that a container sees.
struct ContainerMount {
  enum class Kind { host_path, volume };
  Kind kind = Kind::host_path;
  std::string source, target;
  bool read_only = false;
  std::string sub_path = {};                       // of a volume, where engines know that
  std::map<std::string, std::string> labels = {};  // of a volume that is made
  std::string volume = {};  // of a host_path that is a directory of one: see docker_parts.cc
};

struct ContainerRules {
  std::string network_mode = "bridge";  // or the name of a network; see names_a_network()
  std::vector<std::string> drop_capabilities;
  std::string apparmor_profile;      // "": the engine's
  std::string seccomp_profile = {};  // its JSON, or "unconfined"; "": the engine's
  std::string seccomp_file = {};     // where that JSON is from, for Podman, which takes no text
  bool no_new_privileges = true;
  std::vector<std::string> binds = {};  // in every container, as an engine writes them
  std::string oci_runtime = {};         // what the engine starts containers with; "": its own choice
  bool ipv6 = false;                    // the host has it
  bool remote = false;                  // the engine has other files and another network than this host
  int64_t processors = 0;               // that the engine has; 0: it is not known
  std::string sidecar = {};             // the engine's id of the one whose network this one shares
  // Where ports of containers are published for everybody, and which of the host's ("40000-40100", "": any).
  struct Publish {
    std::string host, ports = {};
  };
  std::optional<Publish> publish = {};
  bool has_own_kernel() const { return !oci_runtime.empty(); }
  // Whether execd is reached by the container's network: see docker_reach.cc.
  bool by_network() const { return has_own_kernel() && !remote; }
};

// Whether somebody has to have made it: it is none that every engine has (Docker's, and Podman's further
// ones).
bool names_a_network(std::string_view network_mode);

// `boot`: the directory of the host that holds execd (see SandboxFiles), or the volume of a remote engine.
std::string container_body(const runtime::SandboxSpec& spec, const Image& image, const std::string& owner,
                           const std::string& boot, const ContainerRules& rules,
                           const std::vector<ContainerMount>& mounts = {});
// One that is never started: it has the volume at `inside`, to be written.
std::string filler_body(const std::string& image_id, const std::string& volume, const std::string& inside,
                        const std::map<std::string, std::string>& labels);
// The egress of a sandbox on another host, in a container of its own; see docker_sidecar.cc.
struct Sidecar {
  std::string image_id, handle, id, owner;
  std::string boot;  // the volume with execd
  std::vector<std::string> environment = {};
};
std::string sidecar_body(const Sidecar& sidecar, const ContainerRules& rules);
// With which a container becomes the image of a snapshot: what `labels` and `variables` say of it is taken
// off. A variable is its name, or with a value when the image below has one.
std::string commit_body(const std::map<std::string, std::string>& labels,
                        const std::vector<std::string>& variables, const std::string& owner,
                        const std::string& snapshot);
// The same for Podman, which reads changes and no body. Names of labels that are no words are an image's own;
// Code::unsupported for such variables.
Result<std::vector<std::string>> commit_changes(const std::map<std::string, std::string>& labels,
                                                const std::vector<std::string>& variables,
                                                const std::string& owner, const std::string& snapshot);

}  // namespace osb::docker
