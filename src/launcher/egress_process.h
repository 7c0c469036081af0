#pragma once

// The egress process as a service of the launcher (service.h): what sandboxes send out goes through it. Of
// its own it gets
//   3: a listening unix socket, on which the server tells it about sandboxes and asks for their policies
//   4: its channel to the launcher, for the sockets inside sandboxes
//   5: a directory of its own, where it keeps the policies

#include "launcher/service.h"
#include "launcher/settings.h"
#include "launcher/state_dir.h"

namespace osb::launcher {

inline constexpr int kEgressListenerFd = 3;
inline constexpr int kEgressLauncherFd = 4;
inline constexpr int kEgressDirectoryFd = 5;
// In the directory of sockets, with the name that a sandbox's have.
inline constexpr char kEgressSocketName[] = "egress";
inline constexpr char kEgressSocketSuffix[] = ".service";

// What it holds as long as the launcher lives; every life of the process gets both.
struct EgressDescriptors {
  Fd listener, directory;
};
Result<EgressDescriptors> open_egress_descriptors(const Settings& settings, const StateDir& state);

ServiceSpec egress_service(const Settings& settings, const EgressDescriptors& descriptors, int callers);

}  // namespace osb::launcher
