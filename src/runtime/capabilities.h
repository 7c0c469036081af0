#pragma once

// What a runtime can do on this host, known before anybody asks for it: validation refuses with the reason
// that stands here, diagnostics print it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "runtime/spec.h"

namespace osb::runtime {

// One thing a runtime can do, or the reason why not. Without a word it cannot.
struct Ability {
  enum class Kind {
    no,          // whoever asks for it is refused
    unenforced,  // it may be asked for, and nothing holds the sandbox to it
    yes,
  };
  Kind kind = Kind::no;
  std::string why = "this server does not have this part yet";  // part of a sentence, unless yes
  std::optional<int64_t> most = {};                             // yes, up to this number

  static Ability can() { return {Kind::yes, ""}; }
  static Ability at_most(int64_t most, std::string why) { return {Kind::yes, std::move(why), most}; }
  static Ability cannot(std::string why) { return {Kind::no, std::move(why)}; }
  static Ability without_effect(std::string why) { return {Kind::unenforced, std::move(why)}; }
  explicit operator bool() const { return kind != Kind::no; }
};

struct Capabilities {
  // resourceLimits.
  Ability cpu, memory, pids, disk, io_read, io_write, open_files;
  Ability gpu;
  Ability pause;
  Ability snapshots;
  Ability pools;
  Ability volumes;
  Ability network_policy;
  Ability secure_access;                    // nobody gets to its ports without a token
  Ability pull;                             // brings images here by itself
  std::vector<std::string> platforms = {};  // "linux/amd64", the runtime's own first
};

struct NamedAbility {
  std::string_view name;  // as a request names it
  const Ability& ability;
};
// All of them, in a fixed order.
std::vector<NamedAbility> abilities_of(const Capabilities& capabilities);

// The first part of a spec that cannot be had, by the name a request has for it.
struct Obstacle {
  std::string field;
  std::string why;
  bool is_limit = false;
};
std::optional<Obstacle> obstacle(const SandboxSpec& spec, const Capabilities& capabilities);

// A few lines for people: what is there, and a line for each thing that is not.
std::string to_text(const Capabilities& capabilities);

}  // namespace osb::runtime
