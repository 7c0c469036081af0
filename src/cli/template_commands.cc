// `osb template` in the published client's words. A server without templates says so.

#include <fmt/format.h>

#include "base/fd.h"
#include "base/strings.h"
#include "cli/server_command.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

constexpr size_t kFileLimit = 1 << 20;

struct Create : ServerCommand {
  std::string image, publish, file, format, probe;
  std::vector<std::string> resources, entrypoint, env, metadata;
  int64_t warmup = -1;
  void options(CLI::App& app) override {
    app.add_option("-i,--image", image, "image to build it from");
    app.add_option("-p,--publish", publish, "where what is built goes: s3://bucket/prefix");
    app.add_option("-f,--file", file, "file with the whole request as JSON");
    repeatable(app.add_option("--resource", resources, "cpu=1, memory=512Mi; repeatable"));
    repeatable(app.add_option("--entrypoint", entrypoint, "word of its program; repeatable"));
    repeatable(app.add_option("-e,--env", env, "KEY=VALUE for its processes; repeatable"));
    repeatable(app.add_option("-m,--metadata", metadata, "KEY=VALUE; repeatable"));
    app.add_option("--format", format, "native or overlaybd")->check(CLI::IsMember({"native", "overlaybd"}));
    app.add_option("--readiness-probe", probe, "what says that it is ready");
    app.add_option("--warmup-seconds", warmup, "how long to wait without one")->check(CLI::NonNegativeNumber);
    output.options(app);
  }
  Result<bj::object> request() const {
    bj::object body;
    if (!file.empty()) {
      auto value =
          TRY(in_context("--file", json::parse(TRY(in_context("--file", read_file(file, kFileLimit))))));
      if (!value.is_object()) return fail(Code::invalid_argument, "--file needs a JSON object");
      return value.as_object();
    }
    if (image.empty() || publish.empty())
      return fail(Code::invalid_argument, "--image and --publish are needed, or --file");
    body = {{"image", image}, {"publish", publish}};
    if (!resources.empty()) body["resourceLimits"] = TRY(key_values(resources, "--resource"));
    if (!entrypoint.empty()) body["entrypoint"] = bj::array(entrypoint.begin(), entrypoint.end());
    if (!env.empty()) body["env"] = TRY(key_values(env, "--env"));
    if (!metadata.empty()) body["metadata"] = TRY(key_values(metadata, "--metadata"));
    if (!format.empty()) body["format"] = format;
    bj::object readiness;
    if (!probe.empty()) readiness["probe"] = probe;
    if (warmup >= 0) readiness["warmupSeconds"] = warmup;
    if (!readiness.empty()) body["readiness"] = std::move(readiness);
    return body;
  }
  Task<Result<int>> run(Api& api) override {
    auto answer = CO_TRY(co_await api.ask("POST", "/v1/templates", json::print(CO_TRY(request()))));
    bj::value renamed = in_snake_case(answer);
    if (renamed.is_object()) output.made("Template Created", renamed.as_object());
    co_return 0;
  }
};

struct List : ServerCommand {
  std::vector<std::string> metadata;
  int64_t page = 0, page_size = 0;
  void options(CLI::App& app) override {
    repeatable(app.add_option("-m,--metadata", metadata, "only those with this KEY=VALUE; repeatable"));
    app.add_option("--page", page, "which page, from 1")->check(CLI::PositiveNumber);
    app.add_option("--page-size", page_size, "how many on one")->check(CLI::PositiveNumber);
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string query =
        fmt::format("?page={}&pageSize={}", page > 0 ? page : 1, page_size > 0 ? page_size : 20);
    bj::value renamed = in_snake_case(CO_TRY(co_await api.ask("GET", "/v1/templates" + query)));
    const auto* items = renamed.is_object() ? renamed.as_object().if_contains("items") : nullptr;
    bj::array rows = items && items->is_array() ? items->as_array() : bj::array();
    output.rows("Templates", {"id", "image", "status", "created_at"}, rows, renamed);
    co_return 0;
  }
};

struct One : ServerCommand {
  std::string id;
  void options(CLI::App& app) override {
    app.add_option("TEMPLATE_ID", id, "the template")->required();
    output.options(app);
  }
};

struct Get : One {
  Task<Result<int>> run(Api& api) override {
    bj::value renamed = in_snake_case(CO_TRY(co_await api.ask("GET", "/v1/templates/" + percent_encode(id))));
    if (renamed.is_object()) output.record("Template Info", renamed.as_object());
    co_return 0;
  }
};

struct Delete : One {
  Task<Result<int>> run(Api& api) override {
    CO_TRY(co_await api.ask("DELETE", "/v1/templates/" + percent_encode(id)));
    output.ok("Template deleted: " + id);
    co_return 0;
  }
};

}  // namespace

void add_template(CommandTree& tree) {
  CLI::App& group = tree.group("template", "images that are started once and then copied");
  add_server_command<Create>(tree, group, "create", "build one");
  add_server_command<Get>(tree, group, "get", "what is known about one");
  add_server_command<List>(tree, group, "list", "list them");
  add_server_command<Delete>(tree, group, "delete", "remove one");
}

}  // namespace osb::cli
