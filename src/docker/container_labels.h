#pragma once

// What a container is called and says of itself. People find a sandbox by its id, in the name and in a label,
// as they do with other OpenSandbox servers; this server finds its own by the owner and the handle. An engine
// cannot change labels, so what they say of an expiry or of metadata is what was true when the container was
// made, and nothing of ours reads it back.

#include <map>
#include <string>
#include <vector>

#include "runtime/spec.h"

namespace osb::docker {

using Labels = std::map<std::string, std::string>;

// By which containers are found again.
inline constexpr char kOwnerLabel[] = "opensandbox.io/owner";
inline constexpr char kHandleLabel[] = "opensandbox.io/handle";
// The sandbox's id. Containers of the build before have none, those of the original server no owner.
inline constexpr char kIdLabel[] = "opensandbox.io/id";
inline constexpr char kExpiresLabel[] = "opensandbox.io/expires-at";
inline constexpr char kManualLabel[] = "opensandbox.io/manual-cleanup";
inline constexpr char kOsLabel[] = "opensandbox.io/platform-os",
                      kArchLabel[] = "opensandbox.io/platform-arch";
inline constexpr char kRenewLabel[] = "opensandbox.io/access-renew-extend-seconds";
inline constexpr char kExtensionLabels[] = "opensandbox.io/extensions.";
// On one whose network is led through the egress process: see docker_network.cc.
inline constexpr char kEgressLabel[] = "opensandbox.io/egress";
inline constexpr char kWithPolicy[] = "policy";
// On one of another host: the volume that has its execd, by which it is also known to be reached through the
// engine (docker_remote.cc). Empty on all others.
inline constexpr char kBootLabel[] = "opensandbox.io/boot";
// On the container whose network a sandbox shares: the id of that sandbox.
inline constexpr char kSidecarLabel[] = "opensandbox.io/egress-sidecar-for";
// On a container: the volumes that it has, a list in JSON.
inline constexpr char kVolumesLabel[] = "opensandbox.io/volumes";
// On the container that holds volumes of which a sandbox has only a part: the handle of that sandbox; and on
// the sandbox's own: the name of that one. See docker_parts.cc.
inline constexpr char kHolderLabel[] = "opensandbox.io/volume-holder-for";
inline constexpr char kHeldLabel[] = "opensandbox.io/volume-holder";
// On an image that is a snapshot, and on what is made from it.
inline constexpr char kSnapshotLabel[] = "opensandbox.io/snapshot-id";
inline constexpr char kSnapshotOwnerLabel[] = "opensandbox.io/snapshot-owner";

// `of_image`: labels of the image, which its container inherits. Those with names of ours are nobody's word
// and are blanked, except that a snapshot says which it is. `volumes`: by the engine's names.
Labels labels_of(const runtime::SandboxSpec& spec, const std::string& owner, const Labels& of_image,
                 const std::vector<std::string>& volumes);
// The names in a kVolumesLabel; none when it says nothing that can be read.
std::vector<std::string> volumes_in(const Labels& labels);

// Of a sandbox with this id, or with this handle in the build before.
std::string container_name(const std::string& id);
// Of the one that holds its volumes.
std::string holder_name(const std::string& handle);
// Of the one whose network it shares.
std::string sidecar_name(const std::string& id);
// While another container of the same sandbox has that name: a rollback makes the new one first.
std::string second_name(const std::string& name, const std::string& handle);

}  // namespace osb::docker
