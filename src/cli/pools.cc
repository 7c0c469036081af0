#include "cli/pools.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/fd.h"
#include "base/shown.h"
#include "base/strings.h"
#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/named_things.h"
#include "cli/table.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

constexpr size_t kMaxTemplate = 1 << 20;  // more than a server takes

Result<std::string> read_template(const std::string& file) {
  if (file.empty()) return "";
  auto text = file == "-" ? read_all(STDIN_FILENO, kMaxTemplate) : read_file(file, kMaxTemplate);
  return in_context("read the template", std::move(text));
}

Task<Result<void>> create(Api& api, PoolOptions options) {
  std::string text = CO_TRY(read_template(options.file));
  std::string body = CO_TRY(pool_body(options, text));
  CO_TRY(co_await api.ask("POST", "/v1/pools", std::move(body)));
  fmt::print("{}\n", shown(options.names.front()));
  co_return Result<void>();
}

Task<Result<void>> inspect(Api& api, std::string name) {
  auto answer = CO_TRY(co_await api.ask("GET", "/v1/pools/" + percent_encode(name)));
  fmt::print("{}\n", json::print(answer));
  co_return Result<void>();
}

}  // namespace

Result<std::string> pool_body(const PoolOptions& options, std::string_view text) {
  bj::object body{{"name", options.names.front()}};
  if (!text.empty()) {
    body["template"] = TRY(in_context("the template is no JSON", json::parse(text)));
  } else {
    bj::object shape{{"image", {{"uri", options.image}}}}, limits;
    if (!options.cpu.empty()) limits["cpu"] = options.cpu;
    if (!options.memory.empty()) limits["memory"] = options.memory;
    if (!limits.empty()) shape["resourceLimits"] = std::move(limits);
    body["template"] = std::move(shape);
  }
  body["capacitySpec"] = {{"bufferMin", options.buffer_min},
                          {"bufferMax", options.buffer_max},
                          {"poolMin", options.pool_min},
                          {"poolMax", options.pool_max}};
  return json::print(body);
}

std::string pool_table(const std::vector<bj::value>& pools, WallTime now) {
  std::vector<std::vector<std::string>> rows{
      {"NAME", "WAIT", "TAKEN", "IN THE MAKING", "BUFFER", "POOL", "AGE", "TROUBLE"}};
  for (const bj::value& one : pools) {
    json::Issues ignored;
    auto field = json::Field::root(one, ignored, "pool");
    auto number = [](const json::Field& f) { return std::to_string(f.integer().value_or(0)); };
    auto capacity = field["capacitySpec"];
    auto status = field["status"];
    auto created = parse_time(field["createdAt"].string().value_or(""));
    auto age =
        created ? std::chrono::duration_cast<std::chrono::seconds>(now - *created) : std::chrono::seconds(0);
    rows.push_back({std::string(shown(field["name"].string().value_or("?"))), number(status["available"]),
                    number(status["allocated"]), number(status["pending"]),
                    number(capacity["bufferMin"]) + "-" + number(capacity["bufferMax"]),
                    number(capacity["poolMin"]) + "-" + number(capacity["poolMax"]),
                    !created           ? "?"
                    : age.count() <= 0 ? "0s"
                                       : print_duration(age),
                    std::string(shown(status["message"].string().value_or("-")))});
  }
  return print_table(rows);
}

io::Task<int> run_pools(PoolOptions options) {
  using What = PoolOptions::What;
  Api api(options.connection);
  if (options.what == What::remove)
    co_return co_await remove_named(api, "/v1/pools/", std::move(options.names));
  auto done = options.what == What::create ? co_await create(api, options)
              : options.what == What::inspect
                  ? co_await inspect(api, options.names.front())
                  : co_await list_named(api, "/v1/pools", options.json, pool_table);
  if (done) co_return 0;
  print_error("osb", done.error());
  co_return 1;
}

}  // namespace osb::cli
