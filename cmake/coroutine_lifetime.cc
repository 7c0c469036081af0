// Run at configure time. Exit 0 means: temporaries in co_await expressions live exactly as long as the
// standard says.
#include <coroutine>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace {

int live = 0;

struct Tracked {
  std::string text;
  Tracked(const char* t) : text(t) { ++live; }
  Tracked(const Tracked& o) : text(o.text) { ++live; }
  Tracked(Tracked&& o) noexcept : text(std::move(o.text)) { ++live; }
  ~Tracked() {
    text = "dead";
    --live;
  }
};

struct Options {
  Tracked name;
  std::vector<Tracked> list;
};

struct Task {
  struct promise_type {
    std::string value;
    std::coroutine_handle<> waiter;
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Resume {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept {
          return h.promise().waiter ? h.promise().waiter : std::noop_coroutine();
        }
        void await_resume() noexcept {}
      };
      return Resume{};
    }
    void return_value(std::string v) { value = std::move(v); }
    void unhandled_exception() { __builtin_trap(); }
  };
  std::coroutine_handle<promise_type> handle;
  Task(std::coroutine_handle<promise_type> h) : handle(h) {}
  Task(Task&& o) noexcept : handle(std::exchange(o.handle, {})) {}
  ~Task() {
    if (handle) handle.destroy();
  }
  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) {
    handle.promise().waiter = h;
    return handle;
  }
  std::string await_resume() { return std::move(handle.promise().value); }
};

std::vector<std::coroutine_handle<>> parked;
struct Park {
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> h) { parked.push_back(h); }
  void await_resume() {}
};

Task by_value(Options o) {
  co_await Park{};
  co_return o.name.text + o.list.at(1).text;
}
Task by_reference(const Options& o) {
  co_await Park{};
  co_return o.name.text + o.list.at(0).text;
}
Task outer() {
  std::string a = co_await by_value({"a", {"b", "c"}});
  std::string b = co_await by_reference({"d", {"e"}});
  std::string c = ({
    auto r = co_await by_value({"f", {"g", "h"}});
    if (r.empty()) co_return "empty";
    std::move(r);
  });
  co_return a + b + c;
}

}  // namespace

int main() {
  std::string got;
  {
    Task t = outer();
    t.handle.resume();
    while (!parked.empty()) {
      auto h = parked.back();
      parked.pop_back();
      h.resume();
    }
    got = t.handle.promise().value;
  }
  std::printf("%s, %d alive\n", got.c_str(), live);
  return got == "acdefh" && live == 0 ? 0 : 1;
}
