#include "launcher/egress_process.h"

#include <fcntl.h>

#include "sys/directory.h"

namespace osb::launcher {

Result<EgressDescriptors> open_egress_descriptors(const Settings& settings, const StateDir& state) {
  EgressDescriptors made;
  std::string directory = state.path(state::kEgress);
  TRY(sys::ensure_directory(directory, 0700, settings.egress_uid, settings.egress_gid));
  made.directory = TRY(open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  state.remove_socket(kEgressSocketName, kEgressSocketSuffix);  // one that a killed launcher left
  made.listener = TRY(state.listen(kEgressSocketName, kEgressSocketSuffix));
  return made;
}

ServiceSpec egress_service(const Settings& settings, const EgressDescriptors& descriptors, int callers) {
  ServiceSpec spec;
  spec.name = "egress process";
  spec.executable = settings.egress_fd;
  spec.arguments = settings.egress;
  spec.uid = settings.egress_uid;
  spec.gid = settings.egress_gid;
  spec.descriptors = {{descriptors.listener.get(), kEgressListenerFd},
                      {descriptors.directory.get(), kEgressDirectoryFd}};
  spec.channel_as = kEgressLauncherFd;
  spec.environment = ServiceSpec::Environment::empty;
  spec.verbs = {Verb::listeners, Verb::callers};
  // Sandboxes with policies of their own are taken up again at once; else there is nothing to do before
  // somebody calls.
  auto policies = sys::names_in(descriptors.directory.get());
  if (policies && policies->empty()) spec.wakes = {descriptors.listener.get(), callers};
  // Without it sandboxes run on and reach nothing.
  spec.is_essential = false;
  return spec;
}

}  // namespace osb::launcher
