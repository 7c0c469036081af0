#include "tools.h"

namespace osb::probe {
namespace {

// The image is no module and the name none either: past the privilege check there is only an error left.
void run(Attempts& a, Args) {
  char image[16] = "not a module";
  a.gate("init_module(2)", "invalid image", ::syscall(SYS_init_module, image, sizeof image, ""));
  a.gate("finit_module(2)", "no descriptor", ::syscall(SYS_finit_module, -1, "", 0));
  a.gate("delete_module(2)", "unknown name", ::syscall(SYS_delete_module, "osb_probe_no_such", O_NONBLOCK));
}

}  // namespace

extern const Probe probe_modules = {"modules", "load and unload kernel modules",
                                    "reaches into the kernel's module loader", run};

}  // namespace osb::probe
