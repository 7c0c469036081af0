#pragma once

// What a policy says about a name, an address, a connection; always with the rule that decided and how it
// could be changed, because that is all that whoever was refused will ever see.
//
// Names: the first rule that fits counts, the operator's denials before the operator's permissions before the
// sandbox's own. Addresses: every denial counts before any permission. An address that no rule names is
// reachable when a name that may be looked up has led to it, or when everything else is allowed and it is one
// of the public internet.

#include <string>
#include <string_view>
#include <vector>

#include "egress/policy.h"
#include "egress/special_addresses.h"

namespace osb::egress {

// What the operator decides for every sandbox.
struct Overlay {
  std::vector<Rule> deny = {}, allow = {};
  // DNS over HTTPS, by the addresses of who offers it: port 443 of these is closed, or of all.
  enum class Https { open, closed_to_resolvers, closed } https = Https::open;
  std::vector<EgressTarget> resolvers = {};
};

// What kind of rule has decided. Few and fixed: refusals are counted by it.
enum class Ground {
  rule,           // of the sandbox's policy
  operator_rule,  // of the operator
  standard,       // no rule fits: the policy's default
  address,        // one that needs a rule of its own, or is never reached
  form,           // the client says in a doubtful way whom it wants
  load,           // too many connections
};
inline constexpr size_t kGrounds = 6;
std::string_view to_string(Ground ground);

struct Verdict {
  bool allow = false;
  std::string rule = {};    // "allow *.example.com", "default deny", "a private address"
  bool by_default = false;  // no rule fits: the policy's default has decided
  bool by_address = false;  // a rule names the address: names say nothing more but an express denial
  Ground ground = Ground::rule;
};

// Borrows; made for one question.
class Judge {
 public:
  Judge(const Overlay& overlay, const Policy& policy) : overlay_(overlay), policy_(policy) {}

  Verdict name(std::string_view normal_name) const;
  // `names`: what led to it. `own`: it is an address of the host itself.
  Verdict connection(const IpAddress& address, uint16_t port, const std::vector<std::string>& names,
                     bool own) const;
  // Whether the answer of a lookup may show this address for that name.
  bool may_answer(std::string_view normal_name, const IpAddress& address, bool own) const;
  // What a connection that may be made, to that address, says about whom it wants, in TLS or HTTP: a name or
  // an address.
  Verdict spoken(const Verdict& connection, const IpAddress& to, std::string_view host) const;
  // Whether names can make a difference for such a connection: if not, nobody needs to look at what is sent.
  bool looks_at_names(const Verdict& connection) const;

 private:
  Verdict rest() const;
  bool operator_allows(std::string_view normal_name) const;

  const Overlay& overlay_;
  const Policy& policy_;
};

// For whoever was refused: what happened and what to do.
std::string explain(const Verdict& verdict, std::string_view host, uint16_t port);

}  // namespace osb::egress
