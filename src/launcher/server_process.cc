#include "launcher/server_process.h"

namespace osb::launcher {

ServiceSpec server_service(const Settings& settings) {
  ServiceSpec spec;
  spec.name = "server";
  spec.executable = settings.server_fd;
  spec.arguments = settings.server;
  spec.uid = settings.service_uid;
  spec.gid = settings.service_gid;
  if (settings.engine_gid != 0) spec.groups = {settings.engine_gid};
  spec.descriptors = {{settings.listener_fd, kServerListenerFd}};
  if (settings.notes_fd >= 0) spec.descriptors.push_back({settings.notes_fd, kServerNotesFd});
  spec.channel_as = kServerLauncherFd;
  // What sandboxes send out is none of its business.
  spec.verbs = VerbSet::all().without(Verb::listeners).without(Verb::callers);
  if (settings.engine_socket.empty()) spec.verbs = spec.verbs.without(Verb::engine);
  return spec;
}

}  // namespace osb::launcher
