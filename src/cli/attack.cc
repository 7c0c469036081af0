#include "cli/attack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/this_coro.hpp>
#include <iterator>

#include "base/strings.h"
#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/decoys.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kLife = 600s;  // of the throw-away sandbox, should we be killed
constexpr auto kOneAttempt = 30s;
constexpr size_t kMaxOutput = 256 * 1024;
const std::string kPath = "/tmp/osb-probe";

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::refused:
      return "refused";
    case Verdict::breach:
      return "BREACH";
    case Verdict::not_applicable:
      return "n/a";
    case Verdict::unclear:
      return "UNCLEAR";
  }
  return "?";
}

struct Answer {
  int status = 0;
  std::string output;
};

NewSandbox plain() { return {.image = "host", .env = {}, .cpu = "", .memory = "", .timeout = kLife}; }

// Another sandbox, whom attempts look for. Its disk is limited where that is possible: such a sandbox has a
// device of its own, which the kernel shows to all.
class Neighbour {
 public:
  explicit Neighbour(Api api) : api_(std::move(api)) {}

  const std::string& id() const { return id_; }

  Task<Result<void>> open() {
    NewSandbox limited = plain();
    limited.disk = "64Mi";
    auto made = co_await api_.create(std::move(limited));
    if (!made) made = co_await api_.create(plain());
    auto sandbox = CO_TRY(std::move(made));
    id_ = CO_TRY(text_of(sandbox, "id"));
    co_return Result<void>{};
  }

  Task<> close() {
    if (id_.empty()) co_return;
    auto removed = co_await api_.remove(std::exchange(id_, {}));
    if (!removed && removed.error().code != Code::not_found)
      print_error("osb: remove the sandbox", removed.error());
  }

 private:
  Api api_;
  std::string id_;
};

// The sandbox under attack. An attempt that takes it down gets a fresh one for the next.
class Target {
 public:
  Target(Api api, std::string_view probe) : api_(std::move(api)), probe_(probe) {}

  const std::string& id() const { return id_; }

  Task<Result<Answer>> run(std::vector<std::string> arguments) {
    if (id_.empty()) CO_TRY(co_await open());
    arguments.insert(arguments.begin(), kPath);
    Answer answer;
    auto last = co_await api_.run(id_, {std::move(arguments), "", kOneAttempt},
                                  [&answer](const StreamEvent& event) -> Result<void> {
                                    if (answer.output.size() + event.text.size() > kMaxOutput)
                                      return fail(Code::too_large, "the attempt printed too much");
                                    answer.output += event.text;
                                    return {};
                                  });
    if (!last) {
      co_await close();
      co_return std::unexpected(last.error());
    }
    CommandEnd end = end_from(*last, std::nullopt, 0ms);
    answer.status = end.status;
    if (!end.problem.empty()) answer.output += end.problem;
    co_return answer;
  }

  Task<> close() {
    if (id_.empty()) co_return;
    auto removed = co_await api_.remove(std::exchange(id_, {}));
    if (!removed && removed.error().code != Code::not_found)
      print_error("osb: remove the sandbox", removed.error());
  }

 private:
  Task<Result<void>> open() {
    auto sandbox = CO_TRY(co_await api_.create(plain()));
    id_ = CO_TRY(text_of(sandbox, "id"));
    co_return co_await api_.upload(id_, kPath, 755, probe_);
  }

  Api api_;
  std::string_view probe_;
  std::string id_;
};

struct Tally {
  std::array<int, 4> count{};
  void add(Verdict verdict) { ++count[static_cast<size_t>(verdict)]; }
  int of(Verdict verdict) const { return count[static_cast<size_t>(verdict)]; }
};

Task<Result<Tally>> try_all(Target& target, Neighbour& neighbour) {
  CO_TRY(co_await neighbour.open());
  auto listed = CO_TRY(co_await target.run({"list"}));
  if (listed.status != 0) co_return fail(Code::internal, "osb-probe list: " + listed.output);
  auto attempts = CO_TRY(parse_attempts(listed.output));
  // With both sandboxes there: their names are among what is looked for.
  Decoys decoys = CO_TRY(Decoys::create());
  Tally tally;
  for (const Attempt& attempt : attempts) {
    std::vector<std::string> words = {"run", attempt.name};
    std::ranges::copy(decoys.arguments_for(attempt.name, neighbour.id(), target.id()),
                      std::back_inserter(words));
    auto answer = co_await target.run(std::move(words));
    Verdict verdict = answer ? verdict_of(answer->status) : Verdict::unclear;
    std::string output(trim(answer ? answer->output : answer.error().message));
    std::ranges::replace(output, '\n', ' ');
    if (verdict == Verdict::unclear && answer)
      output = fmt::format("exit status {}: {}", answer->status, output);
    fmt::print("{:<8} {:<22} {}: {}\n", word(verdict), attempt.name, attempt.what, output);
    std::fflush(stdout);
    tally.add(verdict);
  }
  co_return tally;
}

Task<> try_all_into(Target& target, Neighbour& neighbour, std::optional<Result<Tally>>* into) {
  into->emplace(co_await try_all(target, neighbour));
}

}  // namespace

Result<std::vector<Attempt>> parse_attempts(std::string_view text) {
  std::vector<Attempt> attempts;
  for (auto line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    size_t tab = line.find('\t');
    if (tab == 0 || tab == std::string_view::npos)
      return fail(Code::corrupt, fmt::format("no attempt: \"{}\"", line));
    attempts.push_back({std::string(line.substr(0, tab)), std::string(trim(line.substr(tab + 1)))});
  }
  if (attempts.empty()) return fail(Code::corrupt, "the list of attempts is empty");
  return attempts;
}

Verdict verdict_of(int exit_status) {
  switch (exit_status) {
    case 0:
      return Verdict::refused;
    case 10:
      return Verdict::breach;
    case 20:
      return Verdict::not_applicable;
    default:
      return Verdict::unclear;
  }
}

Task<int> attack_sandbox(DoctorOptions options, std::string_view probe) {
  auto signals = Signals::create(co_await io::asio::this_coro::executor);
  if (!signals) {
    print_error("osb", signals.error());
    co_return 1;
  }
  Target target(Api(options.connection), probe);
  Neighbour neighbour{Api(options.connection)};
  std::optional<Result<Tally>> tally;
  co_await io::race(try_all_into(target, neighbour, &tally), signals->more_than(0));
  co_await target.close();
  co_await neighbour.close();
  if (signals->first()) co_return 128 + *signals->first();
  if (!*tally) {
    print_error("osb", tally->error());
    co_return 1;
  }
  const Tally& t = **tally;
  fmt::print("\n{} refused, {} breaches, {} unclear, {} not applicable here\n", t.of(Verdict::refused),
             t.of(Verdict::breach), t.of(Verdict::unclear), t.of(Verdict::not_applicable));
  co_return t.of(Verdict::breach) + t.of(Verdict::unclear) == 0 && t.of(Verdict::refused) > 0 ? 0 : 1;
}

}  // namespace osb::cli
