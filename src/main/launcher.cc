// The launcher's executable: static, started by opensandbox-server as root.

#include <string>
#include <vector>

#include "base/log.h"
#include "launcher/launcher.h"

int main(int argc, char** argv) {
  auto settings = osb::launcher::from_arguments(std::vector<std::string>(argv + 1, argv + argc));
  if (!settings) {
    osb::log::error(settings.error().message);
    return 2;
  }
  return osb::launcher::run(std::move(*settings));
}
