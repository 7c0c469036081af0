#include "launcher/service.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/log.h"

namespace osb::launcher {

Result<void> Service::start(Clock::time_point now) {
  ready_ = false;
  started_ = now;
  auto process = spawn_(spec_);
  if (!process) {
    log::error("cannot start the " + spec_.name, {{"error", process.error().message}});
    start_at_ = now + delay_;
    delay_ = std::min<Clock::duration>(delay_ * 2, spec_.restart.most);
    return std::unexpected(std::move(process.error()));
  }
  start_at_.reset();
  pid_ = process->pid;
  if (process->channel.valid()) channel_.emplace(spec_.name, spec_.verbs, std::move(process->channel));
  ready_ = spec_.ready == ServiceSpec::Ready::when_started;
  return {};
}

bool Service::ended(int wait_status, Clock::time_point now) {
  pid_ = -1;
  ready_ = false;
  channel_.reset();
  if (for_good_ || (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kCannotStart)) return false;
  bool was_healthy = now - started_ > spec_.restart.healthy_after;
  delay_ = was_healthy ? Clock::duration(spec_.restart.first)
                       : std::min<Clock::duration>(delay_ * 2, spec_.restart.most);
  // The delay is one between starts. A service that was killed while it did its work has spent it already,
  // and what it alone does (expiries) must not wait for nothing.
  Clock::duration left = std::max<Clock::duration>(spec_.restart.first, delay_ - (now - started_));
  start_at_ = now + left;
  auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  bool killed = WIFSIGNALED(wait_status);
  log::warn("the " + spec_.name + " ended; starting it again",
            {{killed ? "signal" : "status", killed ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status)},
             {"after_ms", wait}});
  return true;
}

void Service::signal(int number) const {
  // A child of ours that nobody has waited for: the number is still its own.
  if (pid_ > 0) ::kill(pid_, number);
}

}  // namespace osb::launcher
