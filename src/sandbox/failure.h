#pragma once

// What a caller gets when something cannot be done: a kind, a code that programs match, a sentence, and where
// it helps the cause and the remedy. Nothing here knows a protocol: what a kind is on the wire (a status of
// HTTP, say) is decided in one place per protocol (api/failure_status.h).

#include <expected>
#include <string>
#include <utility>

namespace osb::sandbox {

struct Failure {
  enum class Kind {
    invalid,      // the request can never be right
    unsupported,  // right, but not here
    not_found,
    wrong_state,  // right, but not now: the sandbox has to change first
    too_many,     // right, but later: somebody else has to be done first
    unavailable,  // right, but nobody can say now; later may help
    failed,       // this side's fault
  };
  Kind kind = Kind::failed;
  std::string code = {};
  std::string message = {};
  std::string cause = {}, remedy = {};  // may be empty
};

template <class T = void>
using Outcome = std::expected<T, Failure>;

inline std::unexpected<Failure> refuse(Failure failure) { return std::unexpected(std::move(failure)); }

}  // namespace osb::sandbox
