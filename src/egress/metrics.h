#pragma once

// What the egress process has counted, in the text format of Prometheus. No label says anything about a
// sandbox, a name or an address: all sets of labels are fixed.

#include <string>

#include "egress/audit.h"
#include "egress/deny_webhook.h"

namespace osb::egress {

struct Measured {
  const Counters& counters;
  DenyWebhook::Counts webhook;
  size_t attached = 0;     // sandboxes that have been heard of and live
  size_t connections = 0;  // that are open now
};

std::string to_prometheus(const Measured& measured);

}  // namespace osb::egress
