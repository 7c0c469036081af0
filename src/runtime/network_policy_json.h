#pragma once

// A network policy as egress processes read and show it:
// {"defaultAction":"deny","egress":[{"action":"allow","target":"example.com"}]}

#include <string>

#include "json/decode.h"
#include "runtime/spec.h"

namespace osb::runtime {

std::string to_json(const NetworkPolicy& policy);
// What is wrong with it goes to the field's issues.
NetworkPolicy read_policy(const json::Field& field);

}  // namespace osb::runtime
