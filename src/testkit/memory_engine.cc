#include "testkit/memory_engine.h"

#include <boost/json.hpp>

#include "base/fd.h"
#include "base/log.h"
#include "json/decode.h"

namespace osb::testkit {
namespace {

namespace bj = boost::json;

}  // namespace

Result<std::shared_ptr<MemoryEngine>> MemoryEngine::open(io::Executor executor, std::string path) {
  auto engine = std::make_shared<MemoryEngine>(std::move(executor));
  engine->path_ = std::move(path);
  TRY(engine->load());
  return engine;
}

Result<void> MemoryEngine::load() {
  auto text = read_file(path_, 16 << 20);
  if (!text && text.error().code == Code::not_found) return {};
  if (!text) return std::unexpected(std::move(text.error()));
  auto value = TRY(json::parse(*text));
  json::Issues issues;
  auto entries = json::Field::root(value, issues, "engine").object();
  if (!entries) return fail(Code::corrupt, path_);
  for (auto& [id, field] : *entries) {
    auto sandbox = std::make_shared<MemorySandbox>(executor_);
    sandbox->claim.id = id;
    sandbox->spec.handle = field["handle"].required_string();
    sandbox->owner = field["owner"].required_string();
    sandbox->identity = field["identity"].required_string();
    sandbox->claim.record = field["record"].required_string();
    sandbox->paused = field["paused"].boolean().value_or(false);
    sandboxes[id] = std::move(sandbox);
  }
  if (!issues.empty()) return fail(Code::corrupt, path_);
  return {};
}

void MemoryEngine::save() {
  if (path_.empty()) return;
  bj::object all;
  for (const auto& [id, sandbox] : sandboxes) {
    all[id] = {{"handle", sandbox->spec.handle},
               {"owner", sandbox->owner},
               {"identity", sandbox->identity},
               {"record", sandbox->claim.record},
               {"paused", sandbox->paused}};
  }
  auto written = write_file(path_, json::print(all), O_CREAT | O_TRUNC, 0644);
  if (!written) log::error("memory engine", {{"error", written.error().message}});
}

const Faults& MemoryEngine::look() {
  if (path_.empty()) return faults;
  Faults now;
  auto text = read_file(path_ + ".faults", 1 << 16);
  auto value = text ? json::parse(*text) : Result<bj::value>(bj::object());
  if (value) {
    json::Issues issues;
    auto field = json::Field::root(*value, issues, "faults");
    now.away = field["away"].boolean().value_or(false);
    now.slow = std::chrono::milliseconds(field["slow_ms"].integer().value_or(0));
    now.lies_about_ends = field["lies_about_ends"].boolean().value_or(false);
    now.keeps_destroyed = field["keeps_destroyed"].boolean().value_or(false);
    now.names_others = field["names_others"].boolean().value_or(false);
    if (auto id = field["forget"].string()) forget(*id);
  }
  faults = now;
  return faults;
}

void MemoryEngine::forget(const std::string& id) {
  auto found = sandboxes.find(id);
  if (found == sandboxes.end()) return;
  auto sandbox = found->second;
  sandboxes.erase(found);
  sandbox->end = {runtime::End::Kind::lost, 0, "the engine has forgotten it"};
  sandbox->ended.set();
  save();
}

}  // namespace osb::testkit
