// JSON that clients and the server send to execd: a command that is accepted can be executed, a frame that is
// accepted names a program, a permission is one that the kernel knows.
#include <boost/asio/io_context.hpp>

#include "check.h"
#include "execd/command_request.h"
#include "execd/entry.h"
#include "execd/file_info.h"
#include "execd/hooks.h"
#include "json/decode.h"

using namespace osb;

namespace {

struct World {
  boost::asio::io_context loop{1};
  std::unique_ptr<execd::Reaper> reaper = execd::Reaper::create(loop.get_executor()).value();
  execd::Core core{loop.get_executor(), *reaper};
  World() { core.env.set("HOME", "/"); }
};

bool has_nul(std::string_view text) { return text.find('\0') != text.npos; }

void check_command(const boost::json::value& body) {
  static World world;
  auto spec = execd::decode_command(body, world.core);
  if (!spec) {
    CHECK(spec.error().status == 400 && !spec.error().code.empty() && !spec.error().message.empty());
    return;
  }
  CHECK(!spec->argv.empty() && !spec->argv[0].empty());
  for (const std::string& word : spec->argv) CHECK(!has_nul(word));
  for (const std::string& entry : spec->env.block()) CHECK(!has_nul(entry) && entry.find('=') > 0);
  CHECK(spec->timeout.count() >= 0);
  CHECK(spec->cwd.starts_with('/') && !has_nul(spec->cwd));
  if (spec->credentials) CHECK(spec->credentials->uid != UINT32_MAX && spec->credentials->gid != UINT32_MAX);
}

void check_permission(const boost::json::value& body) {
  json::Issues issues;
  auto permission = execd::decode_permission(json::Field::root(body, issues, "body", json::Reading::exact));
  if (auto mode = execd::mode_from_digits(permission.mode)) CHECK((*mode & ~07777u) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  if (auto frame = execd::parse_entry(text)) {
    CHECK(!frame->argv.empty());
    CHECK(frame->uid != UINT32_MAX && frame->gid != UINT32_MAX);
    if (frame->limits.memory_bytes) CHECK(*frame->limits.memory_bytes > 0);
    if (frame->limits.cpu_millis) CHECK(*frame->limits.cpu_millis > 0);
  }
  if (auto hooks = execd::parse_hooks(text)) {
    if (hooks->pre_start) CHECK(!hooks->pre_start->argv.empty() && hooks->pre_start->timeout.count() > 0);
    for (const execd::Hook& hook : hooks->periodic) {
      CHECK(!hook.argv.empty() && hook.schedule);
      auto next = hook.schedule->next(WallTime{});
      CHECK(!next || *next > WallTime{});
    }
  }
  if (auto schedule = Schedule::parse(text)) {
    auto next = schedule->next(WallTime{});
    CHECK(!next || *next > WallTime{});
  }
  auto body = json::parse_first(text);
  if (!body) return 0;
  check_command(*body);
  check_permission(*body);
  return 0;
}
