#include <sys/xattr.h>

#include "tools.h"

namespace osb::probe {
namespace {

// The overlay steers by these: whoever sets one decides what the next mount of the upper shows.
void run(Attempts& a, Args) {
  Scratch scratch;
  if (!scratch.ok()) return a.skipped("no directory to work in");
  for (const char* name :
       {"trusted.overlay.redirect", "trusted.overlay.opaque", "trusted.overlay.metacopy", "trusted.osb"})
    if (a.call("setxattr(2)", name, ::setxattr(scratch.path(), name, "y", 1, 0)))
      ::removexattr(scratch.path(), name);
}

}  // namespace

extern const Probe probe_trusted_xattrs = {
    "trusted_xattrs", "set the attributes that steer the overlay file system", nullptr, run};

}  // namespace osb::probe
