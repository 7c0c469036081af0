#include "runtime/runtimes.h"

#include <algorithm>

namespace osb::runtime {
namespace {

// Stands for a runtime that rows name and this server does not have: an engine that is away for good, until
// somebody configures it again.
class AbsentRuntime : public Runtime {
 public:
  explicit AbsentRuntime(std::string name) : name_(std::move(name)) {}

  std::string_view name() const override { return name_; }
  const Capabilities& capabilities() const override { return nothing_; }
  Task<Result<void>> health() override { co_return std::unexpected(away()); }
  Task<Created<PreparedPtr>> prepare(SandboxSpec) override { co_return std::unexpected(failure()); }
  Task<Created<std::string>> start(PreparedPtr, Claim) override { co_return std::unexpected(failure()); }
  Task<Result<void>> destroy(std::string) override { co_return std::unexpected(away()); }
  Task<Result<std::vector<std::string>>> list() override { co_return std::unexpected(away()); }
  Task<Adoption> adopt(std::string, std::string) override { co_return Adoption{.error = away()}; }
  Task<Adoption> adopt_warm(std::string, Warm) override { co_return Adoption{.error = away()}; }
  Task<Result<End>> wait(std::string) override { co_return std::unexpected(away()); }
  Task<Result<void>> settle(std::string) override { co_return std::unexpected(away()); }
  Task<Result<void>> pause(std::string) override { co_return std::unexpected(away()); }
  Task<Result<bool>> resume(std::string) override { co_return std::unexpected(away()); }
  Task<Result<Recalled>> recall(std::string) override { co_return std::unexpected(away()); }
  Task<Result<void>> keep_record(std::string, std::string) override { co_return std::unexpected(away()); }
  Task<Result<io::Stream>> connect(std::string, uint16_t) override {
    co_return fail(Code::not_found, away().message);
  }
  Task<Result<Output>> logs(std::string) override { co_return std::unexpected(away()); }
  Task<Result<void>> capture(std::string, std::string) override { co_return std::unexpected(away()); }
  Task<Result<KeptSnapshot>> keep(std::string) override { co_return std::unexpected(away()); }
  Task<Result<void>> drop(std::string) override { co_return std::unexpected(away()); }
  Task<Result<std::vector<std::string>>> list_snapshots() override { co_return std::unexpected(away()); }

 private:
  Error away() const {
    return {Code::unavailable, 0, "this server has no runtime " + name_ + "; configure it again"};
  }
  CreateFailure failure() const { return {CreateFailure::Kind::unavailable, away()}; }

  std::string name_;
  Capabilities nothing_;
};

}  // namespace

Runtimes::Runtimes(Runtime& standard) : all_{&standard} {}
Runtimes::~Runtimes() = default;

void Runtimes::add(Runtime& runtime, Offered offered) {
  all_.push_back(&runtime);
  if (offered == Offered::no) not_offered_.push_back(&runtime);
}

// Absent ones are for rows.
Runtime* Runtimes::present(std::string_view name) {
  if (name.empty()) return all_.front();
  auto end = all_.begin() + static_cast<std::ptrdiff_t>(all_.size() - absent_.size());
  auto found = std::find_if(all_.begin(), end, [&](Runtime* r) { return r->name() == name; });
  return found == end ? nullptr : *found;
}

Runtime* Runtimes::find(std::string_view name) {
  Runtime* found = present(name);
  return std::ranges::find(not_offered_, found) == not_offered_.end() ? found : nullptr;
}

Runtime& Runtimes::of(std::string_view name) {
  if (Runtime* found = present(name)) return *found;
  for (const auto& absent : absent_) {
    if (absent->name() == name) return *absent;
  }
  all_.push_back(absent_.emplace_back(std::make_unique<AbsentRuntime>(std::string(name))).get());
  return *all_.back();
}

std::string Runtimes::names() const {
  std::string out;
  for (size_t i = 0; i < all_.size() - absent_.size(); ++i) {
    if (std::ranges::find(not_offered_, all_[i]) != not_offered_.end()) continue;
    out.append(out.empty() ? "" : ", ").append(all_[i]->name());
  }
  return out;
}

}  // namespace osb::runtime
