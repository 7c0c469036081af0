#include "interpreter/interpreter.h"

#include "interpreter/code_routes.h"
#include "interpreter/jupyter_port.h"
#include "interpreter/own_kernels.h"

namespace osb::interpreter {
namespace {

struct Interpreter {
  explicit Interpreter(execd::Parts& parts)
      : kernels(parts.core), contexts(parts.core, kernels), routes(parts, contexts), port(parts.core) {}

  OwnKernels kernels;
  Contexts contexts;
  CodeRoutes routes;
  JupyterPort port;
};

}  // namespace

void add_interpreter(execd::Parts& parts) {
  auto* interpreter = new Interpreter(parts);  // for good
  interpreter->routes.add_to(parts.api.router());
  parts.command_routes.also_interrupt(
      [interpreter](std::string id) { return interpreter->routes.interrupt(std::move(id)); });
  parts.core.tasks.spawn(interpreter->port.run());
}

}  // namespace osb::interpreter
