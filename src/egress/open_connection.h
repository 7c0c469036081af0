#pragma once

// A connection that is relayed, with what was decided about it: known to the parts of attachment.h.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "egress/attachment.h"

namespace osb::egress {

inline constexpr std::string_view kDoubtful =
    "what the client sent names its host in a way that servers read differently";

inline constexpr std::string_view kUnheard =
    "the policy has come to name hosts, and this connection began before its host was looked at";

struct Attachment::Open {
  Open(Attachment& owner_, Destination to_, Verdict verdict_, std::vector<std::string> names_)
      : owner(owner_), to(to_), verdict(std::move(verdict_)), names(std::move(names_)) {}
  ~Open() { owner.open_.erase(this); }
  Attachment& owner;
  Destination to;
  Verdict verdict;
  std::vector<std::string> names;  // that led to its address when it was made
  std::string host;                // what its client says, last
  bool heard = false;              // somebody reads, or has read, whom it wants
  std::weak_ptr<Flow> flow;
};

}  // namespace osb::egress
