#include "interpreter/bash_kernel.h"

#include "execd/events.h"

namespace osb::interpreter {

struct BashKernel::Cell final : execd::PersistentShell::Reader {
  Cell(io::Executor executor, std::string run_id, std::weak_ptr<KernelListener> to)
      : id(std::move(run_id)), listener(std::move(to)), stop(std::move(executor)) {}

  void on_output(std::string_view bytes) override {
    if (auto present = listener.lock()) present->on_output(Stream::out, bytes);
  }

  std::string id;
  std::weak_ptr<KernelListener> listener;
  io::Event stop;
};

Result<std::shared_ptr<BashKernel>> BashKernel::start(execd::Core& core, std::string cwd) {
  auto shell = execd::PersistentShell::create(core, std::move(cwd));
  if (!shell) return fail(Code::not_found, "the kernel could not start: " + shell.error().message);
  return std::shared_ptr<BashKernel>(new BashKernel(core, std::move(*shell)));
}

void BashKernel::listen(std::weak_ptr<KernelListener> listener) {
  listener_ = std::move(listener);
  // The shell takes commands while it starts.
  if (auto present = listener_.lock()) present->on_ready();
}

void BashKernel::run(std::string_view id, std::string_view code) {
  active_ = std::make_shared<Cell>(core_.executor, std::string(id), listener_);
  core_.tasks.spawn(perform(shared_from_this(), active_, std::string(code)));
}

io::Task<> BashKernel::perform(std::shared_ptr<BashKernel> self, std::shared_ptr<Cell> cell,
                               std::string code) {
  co_await io::yield();  // the listener hears nothing from inside run()
  if (!co_await self->shell_->prepare()) {
    if (auto listener = self->listener_.lock()) listener->on_end("the shell cannot be started again");
    co_return;
  }
  auto outcome = co_await self->shell_->execute(std::move(code), cell, cell->stop);
  self->active_.reset();
  self->finish(*cell, outcome);
}

void BashKernel::finish(const Cell& cell, const execd::PersistentShell::Outcome& outcome) {
  auto listener = listener_.lock();
  if (!listener) return;
  KernelMessage message;
  message.id = cell.id;
  message.count = ++count_;
  int code = outcome.status.value_or(outcome.shell_exit ? outcome.shell_exit->api_code() : -1);
  if (code != 0) {
    bool interrupted = !outcome.status && cell.stop.is_set();
    message.op = KernelMessage::Op::error;
    message.ename = interrupted ? "KeyboardInterrupt" : std::string(execd::events::kCommandError);
    message.evalue = interrupted ? "" : std::to_string(code);
    message.traceback = {interrupted          ? "interrupted"
                         : outcome.status     ? "exit status " + std::to_string(code)
                         : outcome.shell_exit ? outcome.shell_exit->text()
                                              : "the shell is gone"};
    listener->on_message(message);
  }
  message.op = KernelMessage::Op::done;
  listener->on_message(message);
}

void BashKernel::interrupt() {
  if (active_) active_->stop.set();
}

void BashKernel::destroy() {
  listener_.reset();
  interrupt();
  shell_->destroy();
}

}  // namespace osb::interpreter
