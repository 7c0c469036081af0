#include <sys/utsname.h>

#include <cstring>

#include "tools.h"

namespace osb::probe {
namespace {

// The names are set to what they are.
void run(Attempts& a, Args) {
  utsname now = {};
  ::uname(&now);
  a.call("sethostname(2)", "the same name", ::sethostname(now.nodename, std::strlen(now.nodename)));
  a.call("setdomainname(2)", "the same name", ::setdomainname(now.domainname, std::strlen(now.domainname)));
}

}  // namespace

extern const Probe probe_hostname = {"hostname", "change the host name", nullptr, run};

}  // namespace osb::probe
