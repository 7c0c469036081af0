// The executable of every host role but the launcher's. Invoked as opensandbox-server it is the service.

#include <string_view>

#include "cli/cli.h"

extern "C" {
extern const char osb_launcher_bytes[], osb_launcher_bytes_end[];
extern const char osb_execd_bytes[], osb_execd_bytes_end[];
extern const char osb_egress_bytes[], osb_egress_bytes_end[];
extern const char osb_probe_bytes[], osb_probe_bytes_end[];
}

int main(int argc, char** argv) {
  osb::cli::Embedded embedded{.launcher = {osb_launcher_bytes, osb_launcher_bytes_end},
                              .execd = {osb_execd_bytes, osb_execd_bytes_end},
                              .egress = {osb_egress_bytes, osb_egress_bytes_end},
                              .probe = {osb_probe_bytes, osb_probe_bytes_end}};
  std::string_view name = argc > 0 ? argv[0] : "osb";
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  if (name == "opensandbox-server") return osb::cli::opensandbox_server_main(argc, argv, embedded);
  return osb::cli::osb_main(argc, argv, embedded);
}
