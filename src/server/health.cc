#include "server/health.h"

#include "base/log.h"
#include "json/escape.h"

namespace osb::server {
namespace {

constexpr auto kLookEvery = std::chrono::seconds(1);
constexpr auto kDeadline = std::chrono::seconds(5);
constexpr auto kPartialDeadline = std::chrono::seconds(1);  // whoever asks for the rest need not wait for it

}  // namespace

io::Task<std::vector<Trouble>> Health::look() {
  auto now = std::chrono::steady_clock::now();
  if (now < next_) co_return last_;
  next_ = now + kDeadline;  // whoever asks while we look gets what was found before
  std::vector<Trouble> found;
  for (const HealthCheck& check : checks_) {
    auto limit = check.weight == HealthCheck::Weight::vital ? kDeadline : kPartialDeadline;
    auto asked = co_await io::with_deadline(limit, check.name, check.ask());
    if (!asked) found.push_back({check.name, asked.error().message, check.remedy, check.weight});
  }
  for (const Trouble& trouble : found) {
    if (last_.empty()) log::warn("not healthy", {{"check", trouble.name}, {"cause", trouble.cause}});
  }
  if (found.empty() && !last_.empty()) log::info("healthy again");
  next_ = std::chrono::steady_clock::now() + kLookEvery;
  last_ = found;
  co_return found;
}

std::string to_json(const std::vector<Trouble>& troubles) {
  std::string out = "[";
  for (const Trouble& trouble : troubles) {
    if (out.size() > 1) out.push_back(',');
    out.append("{\"name\":");
    json::append_string(out, trouble.name);
    out.append(",\"status\":\"failed\",\"cause\":");
    json::append_string(out, trouble.cause);
    out.append(",\"remedy\":");
    json::append_string(out, trouble.remedy);
    out.push_back('}');
  }
  return out + "]";
}

}  // namespace osb::server
