#pragma once

// What a peer may ask the launcher for. Each verb has a request with its answer in this folder.

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace osb::launcher {

enum class Verb : uint8_t {
  start = 1,  // start.h
  stop,       // ending.h
  destroy,
  list,  // finding.h
  adopt,
  sockets,  // looking.h
  ooms,
  freeze,  // pausing.h
  thaw,
  recall,  // finding.h
  record,
  health,  // looking.h
  images,
  listeners,
  capture,  // snapshots.h
  keep,
  drop,
  snapshots,
  diff,
  volume,  // volumes.h
  volumes,
  drop_volume,
  callers,    // looking.h
  container,  // container.h
  engine,
  place,  // snapshots.h
};
inline constexpr Verb kLastVerb = Verb::place;

constexpr std::string_view to_string(Verb verb) {
  constexpr std::string_view kNames[] = {
      "start",  "stop",   "destroy", "list",        "adopt",     "sockets",   "ooms",   "freeze", "thaw",
      "recall", "record", "health",  "images",      "listeners", "capture",   "keep",   "drop",   "snapshots",
      "diff",   "volume", "volumes", "drop-volume", "callers",   "container", "engine", "place"};
  return kNames[static_cast<uint8_t>(verb) - 1];
}

// Verbs that a peer may send: data, so that who may do what can be read in one place.
class VerbSet {
 public:
  constexpr VerbSet(std::initializer_list<Verb> verbs) {
    for (Verb verb : verbs) bits_ |= bit(verb);
  }
  static constexpr VerbSet all() {
    VerbSet set({});
    for (int i = 1; i <= static_cast<int>(kLastVerb); ++i) set.bits_ |= bit(static_cast<Verb>(i));
    return set;
  }
  constexpr VerbSet without(Verb verb) const {
    VerbSet set = *this;
    set.bits_ &= ~bit(verb);
    return set;
  }
  constexpr bool contains(Verb verb) const { return (bits_ & bit(verb)) != 0; }

 private:
  static constexpr uint32_t bit(Verb verb) { return uint32_t{1} << static_cast<uint8_t>(verb); }
  uint32_t bits_ = 0;
};

}  // namespace osb::launcher
