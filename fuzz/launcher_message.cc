// What a server says to the launcher, which is root: any bytes are refused or understood, what is understood
// comes out the same when it is written and read again, and a plan that passes the checks has the kernel's
// trees and their masks whole, once, and with nothing over them.
#include <algorithm>

#include "check.h"
#include "launcher/checks.h"
#include "launcher/messages/all.h"
#include "launcher/protocol.h"
#include "launcher/system_steps.h"

using namespace osb;
using namespace osb::launcher;

namespace {

bool is_system(const Step& step) { return std::ranges::find(system_steps(), step) != system_steps().end(); }

void check_allowed(const Plan& plan) {
  CHECK(plan.id.size() == 36 && plan.id.find('/') == plan.id.npos && plan.id.find('\0') == plan.id.npos);
  CHECK(plan.network.policy.empty());
  auto first = std::ranges::search(plan.steps, system_steps()).begin();
  CHECK(first != plan.steps.end());
  CHECK(std::ranges::count_if(plan.steps, is_system) == static_cast<ptrdiff_t>(system_steps().size()));
  for (auto step = plan.steps.begin(); step != plan.steps.end(); ++step) {
    for (const std::string* path : {&step->target, &step->source}) {
      CHECK(path->find('\0') == path->npos && path->find("/../") == path->npos && !path->ends_with("/.."));
    }
    bool mounts = step->kind == Step::Kind::overlay || step->kind == Step::Kind::bind ||
                  step->kind == Step::Kind::scratch || step->kind == Step::Kind::volume;
    CHECK(is_volume(*step) || step->access == Step::Access::read_only);
    CHECK(step->kind == Step::Kind::bind || step->ids == Step::Ids::sandbox);
    if (step->kind == Step::Kind::volume)
      CHECK(!step->source.starts_with('/') && !step->source.starts_with('.'));
    if (!mounts) continue;
    CHECK(step < first);
    for (const char* tree : {"/proc", "/sys", "/dev"}) {
      CHECK(step->target != tree && !step->target.starts_with(std::string(tree) + "/"));
    }
  }
}

void check_plan(const Plan& plan) {
  auto allowed = check(plan);
  if (allowed) return check_allowed(plan);
  CHECK(allowed.error().code == Code::permission_denied);
  CHECK(!allowed.error().message.empty() && allowed.error().message.size() < 1000);
}

// What is understood comes out the same when it is written and read again.
template <class Body>
void check_body(std::string_view bytes) {
  auto body = decode_body<Body>(bytes);
  if (!body) {
    CHECK(body.error().code == Code::corrupt);
    return;
  }
  std::string again = encode_body(*body);
  auto twice = decode_body<Body>(again);
  CHECK(twice && encode_body(*twice) == again);
  if constexpr (requires { body->plan; }) {
    CHECK(to_text(twice->plan) == to_text(body->plan));
    check_plan(body->plan);
  } else {
    CHECK(again == bytes);
  }
  if constexpr (requires { body->id; }) (void)check_id(body->id);
  if constexpr (requires { body->step; }) (void)check_volume(body->step);
}

// What a peer gets to read comes from the launcher; it must not fall over it all the same.
void check_answer(std::string_view bytes) {
  auto answer = decode_answer(bytes);
  if (!answer) return;
  CHECK(encode_head(*answer) == bytes);
  for (int i = 1; i <= static_cast<int>(kLastVerb); ++i) {
    with_request_of(static_cast<Verb>(i),
                    [&](auto request) { check_body<typename decltype(request)::Answer>(answer->body); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view bytes = fuzz::text_of(data, size);
  check_answer(bytes);
  auto request = decode_request(bytes);
  if (!request) return 0;
  CHECK(encode(*request) == bytes);
  with_request_of(request->verb, [&](auto empty) { check_body<decltype(empty)>(request->body); });
  return 0;
}
