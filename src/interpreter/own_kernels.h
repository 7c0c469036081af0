#pragma once

// Kernels of our own, for every language whose interpreter this sandbox has.
//
// Two things make later contexts fast. Python kernels are forked from a parent that has everything loaded; it
// is made when the first one is asked for, and replaced in the background when cells have imported something
// new. Of every other language that is in use a spare kernel waits, for contexts without a directory of their
// own.
//
// Belongs to one loop.

#include <boost/asio/steady_timer.hpp>
#include <map>
#include <set>

#include "execd/core.h"
#include "interpreter/kernel_source.h"
#include "interpreter/python_parent.h"

namespace osb::interpreter {

class OwnKernels final : public KernelSource {
 public:
  explicit OwnKernels(execd::Core& core);

  Result<std::string> known_name(std::string_view language) const override;
  Result<std::shared_ptr<Kernel>> start(const std::string& language, std::string cwd) override;
  void imported(const std::string& language, const std::vector<std::string>& modules) override;

 private:
  struct Spare {
    explicit Spare(io::Executor executor) : timer(executor) {}
    KernelStart how;
    std::shared_ptr<ProcessKernel> kernel;
    io::asio::steady_timer timer;  // until it is made, then until it is given up
  };

  Result<std::shared_ptr<Kernel>> fork_python(const KernelStart& start);
  void fork_from(std::shared_ptr<PythonParent> parent, std::shared_ptr<ProcessKernel> kernel,
                 KernelStart start, KernelEnds theirs, bool again);
  Result<std::shared_ptr<PythonParent>> python_parent(const KernelStart& start);
  void on_parent_changed(PythonParent& parent, const std::string& unshareable);
  void replace_parent();
  std::shared_ptr<ProcessKernel> take_spare(const KernelStart& start);
  void make_spare_later(const KernelStart& start, const std::shared_ptr<ProcessKernel>& kernel);
  void wait_for_calm(Spare& spare, std::weak_ptr<ProcessKernel> kernel);
  void make_spare(Spare& spare);

  execd::Core& core_;
  std::shared_ptr<PythonParent> parent_, next_parent_;
  std::vector<std::string> modules_;  // in the order in which they were imported
  std::set<std::string> known_modules_, unshareable_;
  size_t shared_modules_ = 0;  // how many of modules_ the newest parent was told
  io::asio::steady_timer parent_timer_;
  std::map<std::string, Spare, std::less<>> spares_;
};

}  // namespace osb::interpreter
