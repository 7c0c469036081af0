#pragma once

// execd's side of the process that Python kernels are forked from (kernels/python_parent.py).
//
// Belongs to one loop.

#include <deque>
#include <functional>

#include "interpreter/process_kernel.h"

namespace osb::interpreter {

class PythonParent : public std::enable_shared_from_this<PythonParent> {
 public:
  enum class State { starting, ready, ended };
  // Called on every change of the state. Of one that ended, `unshareable` names the module that cannot be
  // shared, if that is why.
  using Changed = std::function<void(PythonParent& parent, const std::string& unshareable)>;

  static Result<std::shared_ptr<PythonParent>> start(execd::Core& core, const KernelStart& start,
                                                     const std::vector<std::string>& modules,
                                                     Changed changed);

  State state() const { return state_; }
  const KernelStart& how() const { return how_; }

  // A kernel with these ends, as soon as the parent is ready. Gives its pid, or the ends back when there is
  // no parent any more.
  using Forked = std::function<void(std::expected<pid_t, KernelEnds> pid)>;
  void fork(std::string cwd, KernelEnds theirs, Forked forked);
  // Lets it end when what was asked for is done.
  void retire();

 private:
  struct Order {
    std::string cwd;
    KernelEnds ends;
    Forked forked;
    bool sent = false;
  };

  PythonParent(execd::Core& core, KernelStart how, io::Socket socket, Changed changed)
      : core_(core), how_(std::move(how)), socket_(std::move(socket)), changed_(std::move(changed)) {}
  static io::Task<> read_frames(std::shared_ptr<PythonParent> self);
  void on_message(const KernelMessage& message);
  bool send(std::string_view json, const KernelEnds* ends);
  void send_orders();
  pid_t own_child(int64_t pid) const;
  void end(const std::string& unshareable);

  execd::Core& core_;
  KernelStart how_;
  io::Socket socket_;
  Changed changed_;
  State state_ = State::starting;
  bool retired_ = false;
  pid_t pid_ = -1;
  std::deque<Order> orders_;
  FrameReader frames_{kMaxFrame};
};

}  // namespace osb::interpreter
