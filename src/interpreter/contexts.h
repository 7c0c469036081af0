#pragma once

// The code contexts of this sandbox. They live in memory, as long as execd does.
//
// Belongs to one loop.

#include <map>
#include <memory>
#include <vector>

#include "interpreter/context.h"
#include "interpreter/kernel_source.h"

namespace osb::interpreter {

class Contexts {
 public:
  static constexpr size_t kMaxContexts = 128;

  Contexts(execd::Core& core, KernelSource& kernels) : core_(core), kernels_(kernels) {}

  // Code::invalid_argument for a language that nobody knows, Code::not_found when this sandbox cannot execute
  // it, Code::exhausted when there are too many contexts. `cwd` exists, or is "" for that of commands.
  Result<std::shared_ptr<Context>> create(std::string_view language, std::string cwd);
  // The context that cells share which name a language only. A new one when its kernel has ended.
  Result<std::shared_ptr<Context>> default_for(std::string_view language);
  std::shared_ptr<Context> find(const std::string& id) const;
  // Oldest first; of one language, or all for "".
  std::vector<std::shared_ptr<Context>> list(std::string_view language) const;
  bool destroy(const std::string& id);

 private:
  execd::Core& core_;
  KernelSource& kernels_;
  std::vector<std::shared_ptr<Context>> contexts_;
  std::map<std::string, std::string, std::less<>> defaults_;  // language -> id
};

}  // namespace osb::interpreter
