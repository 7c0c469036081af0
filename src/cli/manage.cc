#include "cli/manage.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/api.h"
#include "cli/api_error.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using What = ManageOptions::What;

// What is new in a text of which the server keeps only the last part: behind the end of what was shown.
std::string_view news(std::string_view text, std::string_view shown) {
  constexpr size_t kEnd = 512;
  if (shown.empty()) return text;
  std::string_view end = shown.substr(shown.size() - std::min(kEnd, shown.size()));
  size_t at = text.rfind(end);
  return at == text.npos ? text : text.substr(at + end.size());
}

// What a program wrote may hold anything; whoever reads it on a terminal asked for it.
Task<Result<void>> print_output(Api& api, const std::string& path, bool follow) {
  std::string shown;
  while (true) {
    auto now = CO_TRY(co_await api.ask("GET", path));
    const auto* status = now.is_object() ? now.as_object().if_contains("status") : nullptr;
    auto state = status && status->is_object() ? text_of(status->as_object(), "state") : std::string();
    std::string text = CO_TRY(co_await api.text(path + "/diagnostics/logs?tail=10000"));
    if (text == "(no logs)") text.clear();
    fmt::print("{}", news(text, shown));
    if (std::fflush(stdout) != 0) co_return Result<void>();
    if (!text.empty()) shown = std::move(text);
    if (!follow || state == "Terminated" || state == "Failed") co_return Result<void>();
    co_await io::sleep_for(std::chrono::milliseconds(200));
  }
}

Task<Result<void>> renew(Api& api, const std::string& id, std::chrono::milliseconds by) {
  auto until = wall_now() + std::chrono::duration_cast<std::chrono::microseconds>(by);
  CO_TRY(co_await api.renew(id, format_api_time(until)));
  fmt::print("{}\n", format_api_time(until));
  co_return Result<void>();
}

Task<Result<void>> manage(ManageOptions options) {
  Api api(options.connection);
  std::string id = CO_TRY(co_await api.find(options.id));
  std::string path = "/v1/sandboxes/" + percent_encode(id);
  switch (options.what) {
    case What::inspect:
      fmt::print("{}\n", json::print(CO_TRY(co_await api.ask("GET", path))));
      break;
    case What::logs:
      co_return co_await print_output(api, path, options.follow);
    case What::pause:
    case What::resume:
      CO_TRY(co_await api.ask("POST", path + (options.what == What::pause ? "/pause" : "/resume")));
      fmt::print("{}\n", id);
      break;
    case What::renew:
      co_return co_await renew(api, id, options.by);
  }
  co_return Result<void>();
}

}  // namespace

io::Task<int> manage_sandbox(ManageOptions options) {
  auto done = co_await manage(std::move(options));
  if (done) co_return 0;
  print_error("osb", done.error());
  co_return 1;
}

}  // namespace osb::cli
