#pragma once

// The template part of task.h.

#include <optional>
#include <utility>

#include "io/task.h"

namespace osb::io {

namespace detail {

// Runs the task for at most `limit`; true when the time was up first. Returns only after the task has ended.
Task<bool> run_until(Duration limit, Task<> task);
Error deadline_error(std::string_view what, Duration limit);

// The result goes through an optional of the waiting frame, so that T needs no default constructor.
template <class T>
Task<> store_result(std::optional<Result<T>>* out, Task<Result<T>> task) {
  out->emplace(co_await std::move(task));
}

}  // namespace detail

template <class T>
Task<Result<T>> with_deadline(Duration limit, std::string what, Task<Result<T>> task) {
  std::optional<Result<T>> result;
  bool expired = co_await detail::run_until(limit, detail::store_result<T>(&result, std::move(task)));
  // A task that succeeded in the very moment its time was up has succeeded: its result may own something.
  if (expired && (!result || !*result)) co_return std::unexpected(detail::deadline_error(what, limit));
  if (!result) co_return fail(Code::cancelled, what + ": cancelled");
  co_return std::move(*result);
}

}  // namespace osb::io
