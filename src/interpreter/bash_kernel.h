#pragma once

// Bash cells: commands of one persistent shell of execd, the same that sessions use. Output and errors share
// one stream, so that they come in the order in which they were written. A cell whose last status is not 0
// ends with an error that names it; the shell's state is kept whatever a cell does.

#include "execd/persistent_shell.h"
#include "interpreter/kernel.h"

namespace osb::interpreter {

class BashKernel final : public Kernel, public std::enable_shared_from_this<BashKernel> {
 public:
  static Result<std::shared_ptr<BashKernel>> start(execd::Core& core, std::string cwd);

  void listen(std::weak_ptr<KernelListener> listener) override;
  void run(std::string_view id, std::string_view code) override;
  void interrupt() override;
  void destroy() override;

 private:
  struct Cell;
  BashKernel(execd::Core& core, std::shared_ptr<execd::PersistentShell> shell)
      : core_(core), shell_(std::move(shell)) {}
  static io::Task<> perform(std::shared_ptr<BashKernel> self, std::shared_ptr<Cell> cell, std::string code);
  void finish(const Cell& cell, const execd::PersistentShell::Outcome& outcome);

  execd::Core& core_;
  std::shared_ptr<execd::PersistentShell> shell_;
  std::weak_ptr<KernelListener> listener_;
  std::shared_ptr<Cell> active_;
  int64_t count_ = 0;
};

}  // namespace osb::interpreter
