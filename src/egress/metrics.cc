#include "egress/metrics.h"

namespace osb::egress {
namespace {

class Text {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_.append("# HELP opensandbox_egress_").append(name).append(" ").append(help);
    out_.append("\n# TYPE opensandbox_egress_").append(name).append(" ").append(type).append("\n");
  }
  void value(std::string_view label, std::string_view word, uint64_t number) {
    out_.append("opensandbox_egress_").append(name_);
    if (!label.empty()) out_.append("{").append(label).append("=\"").append(word).append("\"}");
    out_.append(" ").append(std::to_string(number)).append("\n");
  }
  void only(std::string_view name, std::string_view type, std::string_view help, uint64_t number) {
    family(name, type, help);
    value("", "", number);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string_view name_;
  std::string out_;
};

void add(Text& text, const Counters::ByOutcome& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i)
    text.value("verdict", to_string(static_cast<AuditEvent::Outcome>(i)), numbers[i]);
}

}  // namespace

std::string to_prometheus(const Measured& measured) {
  const Counters& counters = measured.counters;
  Text text;
  text.family("lookups_total", "counter", "Lookups of sandboxes.");
  add(text, counters.lookups);
  text.family("connections_total", "counter", "Connections of sandboxes that were refused or have ended.");
  add(text, counters.connections);
  text.family("refusals_total", "counter", "Lookups and connections that were denied, by what decided.");
  for (size_t i = 0; i < kGrounds; ++i)
    text.value("rule", to_string(static_cast<Ground>(i)), counters.refusals[i]);
  text.only("sent_bytes_total", "counter", "From sandboxes, over connections that have ended.",
            counters.sent);
  text.only("received_bytes_total", "counter", "To sandboxes, over connections that have ended.",
            counters.received);
  text.only("attached_sandboxes", "gauge", "Sandboxes that have sent something, or have a policy.",
            measured.attached);
  text.only("open_connections", "gauge", "Connections of sandboxes.", measured.connections);
  text.family("webhook_total", "counter", "Denials for the webhook, by what came of them.");
  text.value("outcome", "delivered", measured.webhook.delivered);
  text.value("outcome", "failed", measured.webhook.failed);
  text.value("outcome", "dropped", measured.webhook.dropped);
  return text.take();
}

}  // namespace osb::egress
