#include "egress/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::egress {
namespace {

using ::testing::HasSubstr;

TEST(Metrics, CountsByOutcomeAndGround) {
  Counters counters;
  counters.add({.kind = AuditEvent::Kind::lookup,
                .outcome = AuditEvent::Outcome::denied,
                .name = "secret.test",
                .ground = Ground::standard});
  counters.add({.kind = AuditEvent::Kind::connection,
                .outcome = AuditEvent::Outcome::denied,
                .address = "10.0.0.1",
                .ground = Ground::address});
  counters.add({.kind = AuditEvent::Kind::connection,
                .outcome = AuditEvent::Outcome::allowed,
                .sent = 7,
                .received = 11});
  counters.add({.kind = AuditEvent::Kind::connection, .outcome = AuditEvent::Outcome::failed});
  std::string text = to_prometheus(
      {.counters = counters, .webhook = {.delivered = 3, .dropped = 4}, .attached = 2, .connections = 5});
  for (const char* line : {
           "# TYPE opensandbox_egress_lookups_total counter\n",
           "opensandbox_egress_lookups_total{verdict=\"denied\"} 1\n",
           "opensandbox_egress_lookups_total{verdict=\"allowed\"} 0\n",
           "opensandbox_egress_connections_total{verdict=\"allowed\"} 1\n",
           "opensandbox_egress_connections_total{verdict=\"denied\"} 1\n",
           "opensandbox_egress_connections_total{verdict=\"failed\"} 1\n",
           "opensandbox_egress_refusals_total{rule=\"default\"} 1\n",
           "opensandbox_egress_refusals_total{rule=\"address\"} 1\n",
           "opensandbox_egress_refusals_total{rule=\"operator\"} 0\n",
           "opensandbox_egress_sent_bytes_total 7\n",
           "opensandbox_egress_received_bytes_total 11\n",
           "# TYPE opensandbox_egress_attached_sandboxes gauge\nopensandbox_egress_attached_sandboxes 2\n",
           "opensandbox_egress_open_connections 5\n",
           "opensandbox_egress_webhook_total{outcome=\"delivered\"} 3\n",
           "opensandbox_egress_webhook_total{outcome=\"dropped\"} 4\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_EQ(text.find("secret.test"), text.npos);
  EXPECT_EQ(text.find("10.0.0.1"), text.npos);
}

}  // namespace
}  // namespace osb::egress
