// What containers of an engine can have, and why not.

#include "docker/docker_runtime.h"

namespace osb::docker {
namespace {

using runtime::Ability;

std::string platform_of_host() {
#if defined(__aarch64__)
  return "linux/arm64";
#else
  return "linux/amd64";
#endif
}

}  // namespace

runtime::Capabilities docker_capabilities(DockerAbilities given) {
  constexpr char kDevices[] =
      "an engine limits input and output by the device, and does not say on which one containers are";
  runtime::Capabilities out;
  for (Ability* ability : {&out.cpu, &out.memory, &out.pids, &out.pause, &out.snapshots, &out.pools,
                           &out.volumes, &out.pull, &out.secure_access, &out.open_files, &out.gpu, &out.disk})
    *ability = Ability::can();
  for (Ability* ability : {&out.io_read, &out.io_write}) *ability = Ability::cannot(kDevices);
  out.network_policy =
      given.policies
          ? Ability::can()
          : Ability::cannot(
                "containers get a policy from the egress process of this service, which needs a service "
                "that root starts, and enabled = true below [egress] in its configuration");
  if (given.host_network)
    out.network_policy = Ability::cannot(
        "sandboxes of this server have the host's own network (docker.network_mode = \"host\"), which has "
        "no policies");
  if (given.published)
    out.secure_access = Ability::cannot("docker.direct opens the ports of containers to everybody");
  if (given.own_kernel) {
    out.network_policy = Ability::cannot(
        "a container with a kernel of its own is reached by the engine's network, which no policy holds; the "
        "native runtime has policies under gVisor");
    out.snapshots = Ability::cannot(
        "a container with a kernel of its own keeps changes of files to itself, and what the engine sees of "
        "them is not what its programs see");
    out.disk = Ability::cannot(
        "a container with a kernel of its own keeps changes of files to itself, where no quota counts them");
    out.pids = Ability::cannot(
        "programs under a kernel of their own are no processes of this host, and nothing counts them; their "
        "memory and processor time can be limited");
  }
  if (given.remote && given.own_kernel)
    out.network_policy = Ability::cannot(
        "a kernel of its own sends past the packet rules of the container beside it, which has to police it "
        "on another host (docker.remote)");
  else if (given.remote && !given.policies)
    out.network_policy = Ability::cannot(
        "the engine is on another host (docker.remote), where policies are kept by a container beside the "
        "sandbox's, and this server has no image for it (egress.image), or its sandboxes have no network");
  out.platforms = {platform_of_host()};
  return out;
}

}  // namespace osb::docker
