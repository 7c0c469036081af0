#pragma once

// What has happened since: how somebody who follows the events of all sandboxes goes on after a break.

#include <string>
#include <vector>

#include "sandbox/sandbox.h"

namespace osb::store {

// An event with its place among all of them. Numbers grow and are never used twice.
struct NumberedEvent {
  int64_t number = 0;
  std::string sandbox_id = {};
  sandbox::Event event = {};
};

// What came behind a number.
struct EventsBehind {
  std::vector<NumberedEvent> events = {};  // oldest first
  int64_t upto = 0;                        // where to go on
  bool gap = false;                        // others may have come between and are forgotten
};

}  // namespace osb::store
