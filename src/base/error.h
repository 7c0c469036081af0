#pragma once

// Failure as a value.
//
// Every function that can fail returns Result<T>. An Error has a closed Code (the API maps it to a status and
// a public code), the errno if there was one, and a message that grows outward as callers add context:
//   "create sandbox 7f3a: apply limits: memory.max: permission denied; run as root or delegate the cgroup"
// TRY() and CO_TRY() unwrap or pass the error up. Nothing of ours throws.

#include <cerrno>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace osb {

enum class Code {
  invalid_argument,  // the caller's input is wrong
  not_found,
  already_exists,
  wrong_state,  // a valid request at the wrong time
  permission_denied,
  unauthenticated,
  unsupported,  // this build, kernel or configuration cannot do it
  too_large,
  exhausted,  // a limit of ours is reached; try later
  timeout,
  unavailable,  // the other side is not there
  cancelled,
  corrupt,  // stored or received bytes do not mean anything
  internal,
};

std::string_view to_string(Code code);

struct Error {
  Code code = Code::internal;
  int sys_errno = 0;
  std::string message;

  // "what: message"; returns itself so that it can be used in a return statement.
  Error in(std::string_view what) &&;
};

template <class T = void>
using Result = std::expected<T, Error>;

std::unexpected<Error> fail(Code code, std::string message);
// Message "what: <text of err>"; the code follows from err.
std::unexpected<Error> fail_errno(std::string_view what, int err = errno);
Code code_from_errno(int err);
std::string errno_text(int err);

// What a system call returned, or -errno: for code that runs between clone and exec, where there is no
// Result.
inline int check_call(long value) { return value < 0 ? -errno : static_cast<int>(value); }

// Adds context to the error of a result on its way out.
template <class T>
Result<T> in_context(std::string_view what, Result<T> result) {
  if (!result) return std::unexpected(std::move(result.error()).in(what));
  return result;
}

}  // namespace osb

// The value of an expression of type Result<T>, or return its error from the enclosing function.
#define TRY(...)                                                                        \
  ({                                                                                    \
    auto osb_try_result = (__VA_ARGS__);                                                \
    if (!osb_try_result) return ::std::unexpected(::std::move(osb_try_result).error()); \
    ::osb::detail::take(osb_try_result);                                                \
  })

// The same inside a coroutine.
#define CO_TRY(...)                                                                        \
  ({                                                                                       \
    auto osb_try_result = (__VA_ARGS__);                                                   \
    if (!osb_try_result) co_return ::std::unexpected(::std::move(osb_try_result).error()); \
    ::osb::detail::take(osb_try_result);                                                   \
  })

namespace osb::detail {
template <class T, class E>
T take(std::expected<T, E>& r) {
  if constexpr (!std::is_void_v<T>) return std::move(*r);
}
}  // namespace osb::detail
