#include "interpreter/context.h"

#include "base/clock.h"
#include "base/ids.h"
#include "execd/events.h"
#include "interpreter/code_events.h"

namespace osb::interpreter {
namespace {

namespace events = execd::events;

constexpr auto kStartLimit = std::chrono::seconds(60);  // compilers may be slow at their first start
constexpr auto kPartialLine = std::chrono::milliseconds(250);
constexpr std::string_view kKernelError = "KernelError";

}  // namespace

Context::Context(execd::Core& core, std::string language, std::string cwd)
    : core_(core),
      id_(new_uuid4()),
      language_(std::move(language)),
      cwd_(std::move(cwd)),
      start_limit_(core.executor),
      partial_(core.executor) {}

void Context::attach(std::shared_ptr<Kernel> kernel) {
  kernel_ = std::move(kernel);
  // Its time does not run while the sandbox is paused.
  start_limit_.start(kStartLimit, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self || self->ready_ || self->ended_) return;
    auto stuck = self->kernel_;
    self->on_end("the kernel was not ready within " + std::to_string(kStartLimit.count()) + " s");
    stuck->destroy();
  });
  kernel_->listen(weak_from_this());
}

std::shared_ptr<Context::Run> Context::run(std::string code, std::string_view notice) {
  auto run = std::make_shared<Run>(core_.executor, std::move(code));
  run->id = id_ + "." + std::to_string(++runs_);
  std::string first;
  events::append_init(first, id_, epoch_ms());
  events::append_ping(first, epoch_ms());
  if (!notice.empty()) events::append_output(first, Stream::err, std::string(notice) + "\n", epoch_ms());
  run->events.push(first);
  if (ended_) {
    refuse(*run, kKernelError, *ended_ + "; delete this context and create another");
  } else if (waiting_.size() >= kMaxWaiting) {
    refuse(*run, "RUNTIME_ERROR", "session is busy: too many cells wait in context " + id_);
  } else {
    waiting_.push_back(run);
    start_next();
  }
  return run;
}

void Context::start_next() {
  if (active_ || waiting_.empty() || !ready_ || ended_) return;
  active_ = std::move(waiting_.front());
  waiting_.pop_front();
  active_->started = std::chrono::steady_clock::now();
  std::string code = std::move(active_->code);
  kernel_->run(active_->id, code);
}

void Context::interrupt() {
  if (active_) return kernel_->interrupt();
  if (waiting_.empty()) return;
  // The kernel is still starting: what waits first would have been interrupted.
  auto first = std::move(waiting_.front());
  waiting_.pop_front();
  refuse(*first, "KeyboardInterrupt", "interrupted before it began");
}

void Context::destroy() {
  start_limit_.cancel();
  partial_.cancel();
  if (!ended_) ended_ = "the context was deleted";
  fail_all(kKernelError, "the context was deleted while the cell ran");
  if (kernel_) kernel_->destroy();
}

void Context::on_ready() {
  ready_ = true;
  start_limit_.cancel();
  start_next();
}

void Context::on_output(Stream stream, std::string_view bytes) {
  if (!active_ || !active_->events.attached()) return;
  emit_output(*active_, stream, OutputText::More::may_come, bytes);
  arm_partial_timer();
}

void Context::emit_output(Run& run, Stream stream, OutputText::More more, std::string_view bytes) {
  std::string encoded;
  int64_t now = epoch_ms();
  auto emit = [&](std::string_view text) { events::append_output(encoded, stream, text, now); };
  OutputText& text = stream == Stream::out ? run.out : run.err;
  if (bytes.empty()) {
    text.take_rest(more, emit);
  } else {
    text.feed(bytes, emit);
  }
  run.events.push(encoded);
}

void Context::flush_partial_lines(OutputText::More more) {
  if (!active_) return;
  for (Stream stream : {Stream::out, Stream::err}) emit_output(*active_, stream, more, {});
}

void Context::arm_partial_timer() {
  if (partial_armed_ || !(active_->out.waiting() || active_->err.waiting())) return;
  partial_armed_ = true;
  partial_.expires_after(kPartialLine);
  partial_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    auto self = weak.lock();
    if (!self) return;
    self->partial_armed_ = false;
    if (!error) self->flush_partial_lines(OutputText::More::may_come);
  });
}

void Context::on_message(const KernelMessage& message) {
  if (message.op == KernelMessage::Op::modules && imported_) return imported_(message.names);
  if (!active_ || message.id != active_->id) return;
  switch (message.op) {
    case KernelMessage::Op::result:
    case KernelMessage::Op::display:
      return show(message);
    case KernelMessage::Op::error:
      if (!active_->error) active_->error = message;
      return;
    case KernelMessage::Op::done:
      return finish(message.count);
    default:
      return;
  }
}

void Context::show(const KernelMessage& message) {
  flush_partial_lines(OutputText::More::may_come);
  std::string encoded;
  int64_t now = epoch_ms();
  if (message.op == KernelMessage::Op::result && message.count > 0) {
    active_->told_count = message.count;
    append_execution_count(encoded, message.count, now);
  }
  append_result(encoded, message.data, now);
  active_->events.push(encoded);
}

void Context::finish(int64_t count) {
  flush_partial_lines(OutputText::More::none);
  partial_.cancel();
  auto run = std::move(active_);
  std::string last;
  int64_t now = epoch_ms();
  if (count > 0 && run->told_count != count) append_execution_count(last, count, now);
  if (run->error) {
    append_code_error(last, run->error->ename, run->error->evalue, run->error->traceback, now);
  } else {
    auto took = std::chrono::steady_clock::now() - run->started;
    events::append_complete(last, std::chrono::duration_cast<milliseconds>(took).count(), now);
  }
  run->events.push(last);
  run->events.end();
  start_next();
}

void Context::refuse(Run& run, std::string_view name, std::string_view why) {
  std::string last;
  append_code_error(last, name, why, {std::string(name) + ": " + std::string(why)}, epoch_ms());
  run.events.push(last);
  run.events.end();
}

void Context::fail_all(std::string_view name, const std::string& why) {
  flush_partial_lines(OutputText::More::none);
  partial_.cancel();
  if (auto run = std::move(active_)) refuse(*run, name, why);
  for (auto& run : std::exchange(waiting_, {})) refuse(*run, name, why);
}

void Context::on_end(const std::string& reason) {
  if (ended_) return;
  ended_ = reason;
  start_limit_.cancel();
  fail_all(kKernelError, reason);
}

}  // namespace osb::interpreter
