#pragma once

// The hand-over from opensandbox-server, started as root, to the launcher: prepares the state directory and
// the host image, puts the executables it carries into sealed memory, and becomes the launcher.

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "runtime/native/images.h"

namespace osb::runtime {

// Who the server runs as: the named account, else numbers that nobody has; other ones for each service, as
// far as so few numbers go. They are the ones that own the service's files already, if there are some.
struct ServiceAccount {
  uid_t uid = 0;
  gid_t gid = 0;
};
ServiceAccount service_account(const std::string& user, const std::string& state_dir);

// Who the egress process runs as: a number of its own, because it reads what strangers send and must not
// reach the server's files through a mistake in that.
ServiceAccount egress_account(const ServiceAccount& server, const std::string& state_dir);

// What the server is told of control groups where it makes no sandboxes of its own.
inline constexpr char kNoSandboxesHere[] = "none";

struct ServiceOptions {
  std::string given_state_dir;      // as it was written; images.state_dir is the same, resolved
  ImageSettings images;             // host_version is filled in here
  std::string user;                 // service user; when it does not exist, an unprivileged number is used
  Fd listener;                      // where clients connect
  std::vector<std::string> server;  // command line of the server role; "--host-image=VERSION" is appended
  std::vector<std::string> egress;  // command line of the egress process
  gid_t engine_gid = 0;             // see launcher/settings.h
  std::string engine_socket = {};   // likewise
  bool engine_is_enough = false;    // without the rights to make sandboxes there are those of an engine
  Fd notes = {};                    // what the server is to read besides; none: nothing
  Fd runsc;                         // its executable; none: no sandbox runs under it
  std::string runsc_platform;
  std::vector<std::string> shared_paths;  // directories that sandboxes may be given, and what is below
  std::string_view launcher_bytes;
  std::string_view execd_bytes;
  std::string_view egress_bytes;
};

// Returns only on failure.
Error become_service(ServiceOptions options);

}  // namespace osb::runtime
