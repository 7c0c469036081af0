#pragma once

// A protection that a sandbox does without. The only way to go on after a step that protects has failed is to
// name what is left out and why that is acceptable, with this type: `grep -rn 'Weakening{' src` lists every
// place.

#include <cerrno>
#include <initializer_list>

#include "base/error.h"

namespace osb::sys {

struct Weakening {
  const char* what;    // the protection that is missing
  const char* reason;  // why the sandbox is started all the same
};

// 0 when the step failed with one of `errors`; else its status, a negative errno.
constexpr int tolerate(int status, std::initializer_list<int> errors, const Weakening&) {
  for (int error : errors) {
    if (status == -error) return 0;
  }
  return status;
}

// The same for results: a failure of one of these kinds is none.
inline Result<void> tolerate(Result<void> result, std::initializer_list<Code> codes, const Weakening&) {
  if (result) return result;
  for (Code code : codes) {
    if (result.error().code == code) return {};
  }
  return result;
}

}  // namespace osb::sys
