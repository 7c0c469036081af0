#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>

#include "tools.h"

namespace osb::probe {
namespace {

// A fresh network namespace may hold idle tunnel stubs of the kernel (sit0, tunl0); one that is up is a way
// out.
bool is_up(const std::string& name) {
  File socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request = {};
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  return socket.ok() && ::ioctl(socket.fd(), SIOCGIFFLAGS, &request) == 0 &&
         (request.ifr_flags & IFF_UP) != 0;
}

std::vector<std::string> by_proc() {
  std::vector<std::string> names;
  const std::string text = read_file("/proc/net/dev").value_or("");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t colon = line.find(':'), begin = line.find_first_not_of(' ');
    if (colon != std::string::npos && begin < colon) names.push_back(line.substr(begin, colon - begin));
  }
  return names;
}

void run(Attempts& a, Args) {
  std::vector<std::string> mine = by_proc();
  if (struct if_nameindex* list = ::if_nameindex()) {
    for (auto* one = list; one->if_index != 0; ++one) mine.emplace_back(one->if_name);
    ::if_freenameindex(list);
  }
  for (const std::string& name : mine)
    if (name != "lo" && is_up(name)) a.got("network interface " + name);
  // sysfs shows the network namespace it was mounted in, whoever looks.
  for (const std::string& name : list_directory("/sys/class/net")) {
    bool own = name == "lo" || name == "bonding_masters";
    for (const std::string& other : mine) own = own || other == name;
    if (!own) a.got("/sys/class/net shows " + name + " of another network namespace");
  }
  a.stopped("no interface but lo");
}

}  // namespace

extern const Probe probe_interfaces = {"interfaces", "find network interfaces other than lo", nullptr, run};

}  // namespace osb::probe
