#include <linux/keyctl.h>

#include "tools.h"

namespace osb::probe {
namespace {

// Keys are not namespaced. What works is kept in the process keyring, which ends with the child.
void run(Attempts& a, Args) {
  a.call("add_key(2)", "process keyring", in_child([] {
           return ::syscall(SYS_add_key, "user", "osb-probe", "x", 1, KEY_SPEC_PROCESS_KEYRING);
         }));
  a.call("keyctl(2)", "session keyring",
         in_child([] { return ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0); }));
  a.call("keyctl(2)", "user keyring",
         in_child([] { return ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0); }));
  a.gate("request_key(2)", "unknown key", in_child([] {
           return ::syscall(SYS_request_key, "user", "osb-probe-no-such", nullptr, KEY_SPEC_PROCESS_KEYRING);
         }));
}

}  // namespace

extern const Probe probe_keyrings = {"keyrings", "use the kernel's keyrings (add_key, keyctl, request_key)",
                                     nullptr, run};

}  // namespace osb::probe
