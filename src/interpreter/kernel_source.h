#pragma once

// Where contexts get their kernels from: our own programs, or a notebook server.

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "interpreter/kernel.h"

namespace osb::interpreter {

class KernelSource {
 public:
  virtual ~KernelSource() = default;
  // The one name of a language; Code::invalid_argument with those that there are.
  virtual Result<std::string> known_name(std::string_view language) const = 0;
  // A kernel that may still be starting. `language` is a known name.
  virtual Result<std::shared_ptr<Kernel>> start(const std::string& language, std::string cwd) = 0;
  // Cells of this language have imported these modules: later kernels may have them ready.
  virtual void imported(const std::string& language, const std::vector<std::string>& modules) = 0;
};

}  // namespace osb::interpreter
