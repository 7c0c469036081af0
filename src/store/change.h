#pragma once

// Something that has come to pass, all of it or nothing: what is absent stays as it is.

#include <optional>

#include "sandbox/sandbox.h"

namespace osb::store {

struct Change {
  std::optional<sandbox::Status> status = {};
  std::optional<WallTime> expires = {};
  bool removed = false;
  std::optional<sandbox::Event> event = {};
  std::optional<sandbox::Output> output = {};
};

}  // namespace osb::store
