#pragma once

// Kernels of our own, for every language whose interpreter this sandbox has.

#include "execd/core.h"
#include "interpreter/kernel_source.h"

namespace osb::interpreter {

class OwnKernels final : public KernelSource {
 public:
  explicit OwnKernels(execd::Core& core) : core_(core) {}

  Result<std::string> known_name(std::string_view language) const override;
  Result<std::shared_ptr<Kernel>> start(const std::string& language, std::string cwd) override;
  void imported(const std::string& language, const std::vector<std::string>& modules) override;

 private:
  execd::Core& core_;
};

}  // namespace osb::interpreter
