#include "interpreter/own_kernels.h"

#include "interpreter/language.h"
#include "interpreter/process_kernel.h"

namespace osb::interpreter {

Result<std::string> OwnKernels::known_name(std::string_view language) const {
  if (const Language* found = find_language(language)) return std::string(found->name);
  std::string names;
  for (const Language& known : languages()) names += (names.empty() ? "" : ", ") + std::string(known.name);
  return fail(Code::invalid_argument, "unknown language: " + std::string(language) + "; there are " + names);
}

Result<std::shared_ptr<Kernel>> OwnKernels::start(const std::string& name, std::string cwd) {
  const Language& language = *find_language(name);
  KernelStart start{&language, {}, core_.command_env(), std::move(cwd)};
  start.program = TRY(find_interpreter(language, start.env));
  return TRY(ProcessKernel::start(core_, start));
}

void OwnKernels::imported(const std::string&, const std::vector<std::string>&) {}

}  // namespace osb::interpreter
