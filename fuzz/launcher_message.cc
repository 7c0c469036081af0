// What a server says to the launcher, which is root: any bytes are refused or understood, what is understood
// comes out the same when it is written and read again, and a plan that passes the checks has the kernel's
// trees and their masks whole, once, and with nothing over them.
#include <algorithm>

#include "check.h"
#include "launcher/bytes.h"
#include "launcher/checks.h"
#include "launcher/protocol.h"
#include "launcher/system_steps.h"

using namespace osb;
using namespace osb::launcher;

namespace {

bool is_system(const Step& step) { return std::ranges::find(system_steps(), step) != system_steps().end(); }

void check_allowed(const Plan& plan) {
  CHECK(plan.id.size() == 36 && plan.id.find('/') == plan.id.npos && plan.id.find('\0') == plan.id.npos);
  auto first = std::ranges::search(plan.steps, system_steps()).begin();
  CHECK(first != plan.steps.end());
  CHECK(std::ranges::count_if(plan.steps, is_system) == static_cast<ptrdiff_t>(system_steps().size()));
  for (auto step = plan.steps.begin(); step != plan.steps.end(); ++step) {
    for (const std::string* path : {&step->target, &step->source}) {
      CHECK(path->find('\0') == path->npos && path->find("/../") == path->npos && !path->ends_with("/.."));
    }
    bool mounts = step->kind == Step::Kind::overlay || step->kind == Step::Kind::bind ||
                  step->kind == Step::Kind::scratch;
    if (!mounts) continue;
    CHECK(step < first);
    for (const char* tree : {"/proc", "/sys", "/dev"}) {
      CHECK(step->target != tree && !step->target.starts_with(std::string(tree) + "/"));
    }
  }
}

void check_plan(std::string_view bytes) {
  auto plan = decode_plan(bytes);
  if (!plan) return;
  std::string again = encode(*plan);
  auto twice = decode_plan(again);
  CHECK(twice && encode(*twice) == again && to_text(*twice) == to_text(*plan));
  auto allowed = check(*plan);
  if (allowed) return check_allowed(*plan);
  CHECK(allowed.error().code == Code::permission_denied);
  CHECK(!allowed.error().message.empty() && allowed.error().message.size() < 1000);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view bytes = fuzz::text_of(data, size);
  (void)decode_answer(bytes);
  (void)decode_started(bytes);
  auto request = decode_request(bytes);
  if (!request) return 0;
  CHECK(encode(*request) == bytes);
  ByteReader in(request->body);
  (void)check_id(in.string());
  (void)check_id(request->body);
  check_plan(request->body);
  return 0;
}
