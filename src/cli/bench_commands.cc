// `osb bench`: how fast the server is, seen from here. bench/bench of the source tree is what measures
// promises.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <cmath>

#include "cli/scratch_sandbox.h"
#include "cli/server_command.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using Steady = std::chrono::steady_clock;

constexpr auto kLife = std::chrono::seconds(60);  // of a sandbox that nobody could remove

struct Series {
  const char* name;
  std::vector<double> milliseconds = {};

  void add(Steady::time_point since) {
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Steady::now() - since).count());
  }
  double at(double share) const {
    std::vector<double> sorted = milliseconds;
    std::ranges::sort(sorted);
    return sorted[static_cast<size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
  }
  bj::object row() const {
    auto rounded = [](double value) { return std::round(value * 100) / 100; };
    return {{"what", name},
            {"median_ms", rounded(at(0.5))},
            {"p99_ms", rounded(at(0.99))},
            {"count", milliseconds.size()}};
  }
};

struct Bench : ServerCommand {
  std::string image = "host", program = "true", present;
  size_t count = 20;
  Series first{"create to first output"}, create{"  of which the create"}, command{"a command in it"},
      remove{"delete"};

  void options(CLI::App& app) override {
    app.add_option("IMAGE", image, "image of the sandboxes")->capture_default_str();
    app.add_option("-n,--count", count, "how many sandboxes, one after the other")
        ->capture_default_str()
        ->check(CLI::Range(1, 10'000));
    app.add_option("--program", program, "what runs in them, without arguments")->capture_default_str();
    output.options(app);
    app.footer("Makes sandboxes one after the other, runs a program twice in each, and removes them.");
  }

  Task<Result<void>> execute_program(Api& api) {
    CommandRequest what{.argv = {program}, .workdir = "", .timeout = std::nullopt};
    auto end =
        CO_TRY(co_await api.run(present, std::move(what), [](const StreamEvent&) { return Result<void>(); }));
    if (end.kind == StreamEvent::Kind::complete) co_return Result<void>();
    co_return fail(Code::unavailable,
                   fmt::format("the program did not succeed: {}", end_from(end, std::nullopt, {}).problem));
  }

  Task<Result<void>> once(Api& api) {
    auto began = Steady::now();
    auto made =
        CO_TRY(co_await api.create({.image = image, .env = {}, .cpu = "", .memory = "", .timeout = kLife}));
    present = CO_TRY(text_of(made, "id"));
    create.add(began);
    CO_TRY(co_await execute_program(api));
    first.add(began);
    began = Steady::now();
    CO_TRY(co_await execute_program(api));
    command.add(began);
    began = Steady::now();
    CO_TRY(co_await api.remove(std::exchange(present, "")));
    remove.add(began);
    co_return Result<void>();
  }

  Task<Result<void>> all(Api& api) {
    for (size_t i = 0; i < count; ++i) CO_TRY(co_await once(api));
    co_return Result<void>();
  }

  Task<Result<int>> run(Api& api) override {
    auto signals = CO_TRY(Signals::create(co_await io::asio::this_coro::executor));
    std::optional<Result<void>> done;
    bool interrupted = co_await io::race(store(&done, all(api)), signals.more_than(0)) == 1;
    if (!present.empty()) (void)co_await api.remove(present);
    if (interrupted) co_return 128 + signals.first().value_or(0);
    if (!*done) co_return std::unexpected(done->error());
    bj::array rows;
    for (const Series* series : {&first, &create, &command, &remove}) rows.push_back(series->row());
    output.rows("Milliseconds", {"what", "median_ms", "p99_ms", "count"}, rows, rows);
    co_return 0;
  }
};

}  // namespace

void add_bench(CommandTree& tree) {
  add_server_command<Bench>(tree, tree.root(), "bench",
                            "how fast the server makes sandboxes, seen from here");
}

}  // namespace osb::cli
