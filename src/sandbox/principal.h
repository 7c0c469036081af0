#pragma once

// Who asks, and whose sandboxes that opens.
//
// A Principal comes out of the gate and goes with a request through every call. What it may see is a Scope,
// which every call that reads or changes sandboxes for somebody takes: there is no way to ask for a sandbox
// without saying for whom. Work that nobody asked for (recovery, expiry, ends) names Scope::everybody(), so
// that one grep lists every place which looks across owners.

#include <optional>
#include <string>
#include <string_view>

namespace osb::sandbox {

// Owner of everything on a server with one key or none, and of what was made before there were owners.
inline constexpr std::string_view kDefaultOwner = "default";

struct Principal {
  std::string owner = {};  // empty: nobody, who owns nothing
  // Who holds the token of an endpoint is let into one sandbox, whoever owns it.
  std::string sandbox = {};

  static Principal nobody() { return {}; }
  static Principal owner_named(std::string_view owner) { return {.owner = std::string(owner)}; }
  static Principal holder_of_endpoint(std::string_view sandbox) { return {.sandbox = std::string(sandbox)}; }
};

class Scope {
 public:
  static Scope of(const Principal& who);
  static Scope everybody() { return {}; }

  bool covers(std::string_view owner, std::string_view id) const;
  // The owner whose sandboxes a list shows; nothing: everybody's. Who has no owner sees an empty list.
  const std::optional<std::string>& owner() const { return owner_; }

 private:
  std::optional<std::string> owner_;
  std::string sandbox_;  // beside them
};

}  // namespace osb::sandbox
