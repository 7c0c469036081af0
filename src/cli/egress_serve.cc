#include "cli/egress_serve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "sys/memfd.h"

namespace osb::cli {

int become_sidecar(std::string_view program) {
  auto executable = sys::sealed_executable("osb-egress", program);
  if (!executable) {
    fmt::print(stderr, "osb egress serve: {}\n", executable.error().message);
    return 1;
  }
  char name[] = "osb-egress", what[] = "sidecar";
  char* const arguments[] = {name, what, nullptr};
  ::fexecve(executable->get(), arguments, environ);
  fmt::print(stderr, "osb egress serve: the carried program cannot be run: {}\n", std::strerror(errno));
  return 1;
}

}  // namespace osb::cli
