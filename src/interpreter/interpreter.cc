#include "interpreter/interpreter.h"

#include "interpreter/code_routes.h"
#include "interpreter/jupyter_kernel.h"
#include "interpreter/jupyter_port.h"
#include "interpreter/own_kernels.h"

namespace osb::interpreter {
namespace {

// Our own kernels, or those of the notebook server that the sandbox's environment names. Decided when the
// first context needs it: the environment of a native sandbox is not known before.
class ChosenKernels final : public KernelSource {
 public:
  explicit ChosenKernels(execd::Parts& parts) : parts_(parts), own_(parts.core) {}

  Result<std::string> known_name(std::string_view language) const override {
    return TRY(chosen())->known_name(language);
  }
  Result<std::shared_ptr<Kernel>> start(const std::string& language, std::string cwd) override {
    return TRY(chosen())->start(language, std::move(cwd));
  }
  void imported(const std::string& language, const std::vector<std::string>& modules) override {
    if (auto source = chosen()) (*source)->imported(language, modules);
  }

 private:
  Result<KernelSource*> chosen() const {
    if (jupyter_) return &*jupyter_;
    const execd::Core& core = parts_.core;
    std::string url = core.env.get("JUPYTER_HOST"), token = core.env.get("JUPYTER_TOKEN");
    if (url.empty()) url = parts_.options.jupyter_host;
    if (token.empty()) token = parts_.options.jupyter_token;
    if (url.empty()) return &own_;
    jupyter_.emplace(parts_.core, JupyterServer(TRY(parse_jupyter_url(url, token))));
    return &*jupyter_;
  }

  execd::Parts& parts_;
  mutable OwnKernels own_;
  mutable std::optional<JupyterKernels> jupyter_;
};

struct Interpreter {
  explicit Interpreter(execd::Parts& parts)
      : kernels(parts),
        contexts(parts.core, kernels),
        routes(parts, contexts),
        port(parts.core, !parts.options.jupyter_host.empty()) {}

  ChosenKernels kernels;
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
