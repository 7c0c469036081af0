#pragma once

// Threads for work that may block: file operations, mostly. They start when needed, at most kMaxThreads, and
// end when there has been nothing to do for a while, so that an idle sandbox does not pay for them.
//
// Credentials of a thread are its own as far as the kernel is concerned (the C library hides that): a job may
// run with the file-system identity of somebody else while the rest of the process is not affected.

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "execd/spawn.h"
#include "io/task.h"

namespace osb::execd {

class Workers {
 public:
  // Starts a thread that enters `work`; false when there is no room for another one. A parameter for tests.
  using StartThread = bool (*)(Workers& workers);
  static bool start_thread(Workers& workers);

  explicit Workers(io::Executor executor, StartThread start = start_thread)
      : executor_(std::move(executor)), start_(start) {}
  ~Workers();  // waits for the jobs that run

  static constexpr size_t kMaxThreads = 4;

  // Runs `job` on a thread and gives its result, a Result<T> or an expected whose error can be made from an
  // Error. A waiter that is cancelled leaves the job to finish by itself, so the job owns what it uses. With
  // `as`, files are opened, made and refused as for that user; Code::permission_denied when this process may
  // not do that.
  template <class Job, class R = std::invoke_result_t<Job>>
  io::Task<R> run(std::optional<Credentials> as, Job job) {
    co_return co_await begin(std::move(as), std::move(job)).wait();
  }

 private:
  template <class Job, class R>
  struct State;

 public:
  // A job that was begun. Whoever does not wait for it leaves it to finish by itself.
  template <class Job, class R>
  class Begun {
   public:
    explicit Begun(std::shared_ptr<State<Job, R>> state) : state_(std::move(state)) {}
    io::Task<R> wait() { return wait_for(state_); }

   private:
    static io::Task<R> wait_for(std::shared_ptr<State<Job, R>> state) {
      co_await state->done.wait();
      co_return std::move(*state->result);
    }
    std::shared_ptr<State<Job, R>> state_;
  };

  // Like run(), for callers that have something to do meanwhile.
  template <class Job, class R = std::invoke_result_t<Job>>
  Begun<Job, R> begin(std::optional<Credentials> as, Job job) {
    auto state = std::make_shared<State<Job, R>>(executor_, std::move(as), std::move(job));
    // The last owner of the state is the loop: its event belongs there.
    submit([state, executor = executor_]() mutable {
      state->perform();
      io::asio::post(executor, [state = std::move(state)] { state->done.set(); });
    });
    return Begun<Job, R>(std::move(state));
  }

 private:
  // The file-system identity of this thread while it lives.
  class Identity {
   public:
    explicit Identity(const Credentials* as);
    ~Identity();
    bool valid() const { return valid_; }

   private:
    bool switched_ = false, valid_ = true;
    std::vector<gid_t> groups_before_;
  };

  template <class Job, class R>
  struct State {
    State(io::Executor executor, std::optional<Credentials> a, Job j)
        : as(std::move(a)), job(std::move(j)), done(executor) {}
    void perform() {
      Identity identity(as ? &*as : nullptr);
      if (identity.valid()) {
        result.emplace((*job)());
      } else {
        Error error{Code::permission_denied, 0, "execd may not act as uid " + std::to_string(as->uid)};
        result.emplace(std::unexpected(typename R::error_type(error)));
      }
      job.reset();  // what it captured is released where it was used
    }
    std::optional<Credentials> as;
    std::optional<Job> job;
    std::optional<R> result;
    io::Event done;
  };

  void submit(std::function<void()> job) OSB_EXCLUDES(mu_);
  void work() OSB_EXCLUDES(mu_);
  bool wait_for_job() OSB_REQUIRES(mu_);  // false when the thread is to end

  io::Executor executor_;
  StartThread start_;
  Mutex mu_;
  Condition changed_;
  std::deque<std::function<void()>> queue_ OSB_GUARDED_BY(mu_);
  size_t threads_ OSB_GUARDED_BY(mu_) = 0, idle_ OSB_GUARDED_BY(mu_) = 0;
  bool closing_ OSB_GUARDED_BY(mu_) = false;
};

}  // namespace osb::execd
