#include "base/error.h"

#include <gmock/gmock.h>

#include <memory>

namespace osb {
namespace {

Result<int> number(bool works) {
  if (!works) return fail(Code::not_found, "no number");
  return 7;
}
Result<void> nothing(bool works) {
  if (!works) return fail(Code::timeout, "too slow");
  return {};
}
Result<std::unique_ptr<int>> owned(bool works) {
  if (!works) return fail(Code::exhausted, "no memory");
  return std::make_unique<int>(9);
}

Result<int> sum(bool a, bool b, bool c, int& steps) {
  int total = TRY(number(a));
  ++steps;
  TRY(nothing(b));
  ++steps;
  std::unique_ptr<int> rest = TRY(owned(c));
  ++steps;
  return total + *rest;
}

TEST(Try, UnwrapsOrReturns) {
  int steps = 0;
  EXPECT_EQ(sum(true, true, true, steps).value(), 16);
  EXPECT_EQ(steps, 3);
  steps = 0;
  EXPECT_EQ(sum(false, true, true, steps).error().code, Code::not_found);
  EXPECT_EQ(steps, 0);
  EXPECT_EQ(sum(true, false, true, steps).error().message, "too slow");
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(sum(true, true, false, steps).error().code, Code::exhausted);
}

TEST(Try, NestsInsideExpressions) {
  auto twice = []() -> Result<int> { return TRY(number(true)) + TRY(number(true)); };
  EXPECT_EQ(twice().value(), 14);
  auto second = []() -> Result<int> { return TRY(number(true)) + TRY(number(false)); };
  EXPECT_FALSE(second());
}

TEST(Error, GrowsOutward) {
  auto inner = in_context("apply limits", Result<int>(fail(Code::permission_denied, "memory.max: denied")));
  auto outer = in_context("create sandbox", std::move(inner));
  ASSERT_FALSE(outer);
  EXPECT_EQ(outer.error().message, "create sandbox: apply limits: memory.max: denied");
  EXPECT_EQ(outer.error().code, Code::permission_denied);
  EXPECT_EQ(in_context("fine", number(true)).value(), 7);
  EXPECT_TRUE(in_context("fine", nothing(true)));
}

TEST(Error, FromErrno) {
  errno = ENOENT;
  Error error = fail_errno("open /nope").error();
  EXPECT_EQ(error.code, Code::not_found);
  EXPECT_EQ(error.sys_errno, ENOENT);
  EXPECT_EQ(error.message, "open /nope: No such file or directory");
  EXPECT_EQ(fail_errno("x", EACCES).error().code, Code::permission_denied);
  EXPECT_EQ(errno_text(99999), "error 99999");
}

TEST(Error, EveryErrnoThatCallersHandleHasItsCode) {
  struct Case {
    int err;
    Code code;
  };
  for (const Case& c : std::initializer_list<Case>{{ESRCH, Code::not_found},
                                                   {EEXIST, Code::already_exists},
                                                   {EPERM, Code::permission_denied},
                                                   {EROFS, Code::permission_denied},
                                                   {EINVAL, Code::invalid_argument},
                                                   {ELOOP, Code::invalid_argument},
                                                   {EXDEV, Code::invalid_argument},
                                                   {EBUSY, Code::wrong_state},
                                                   {ENOTEMPTY, Code::wrong_state},
                                                   {ENOSYS, Code::unsupported},
                                                   {ENOSPC, Code::exhausted},
                                                   {EMFILE, Code::exhausted},
                                                   {ETIMEDOUT, Code::timeout},
                                                   {ECONNREFUSED, Code::unavailable},
                                                   {EHOSTUNREACH, Code::unavailable},
                                                   {ECANCELED, Code::cancelled},
                                                   {EFBIG, Code::too_large},
                                                   {EIO, Code::internal},
                                                   {0, Code::internal}}) {
    EXPECT_EQ(code_from_errno(c.err), c.code) << c.err;
  }
}

TEST(Code, HasAName) {
  for (int i = 0; i <= static_cast<int>(Code::internal); ++i)
    EXPECT_NE(to_string(static_cast<Code>(i)), "unknown") << i;
  EXPECT_EQ(to_string(Code::too_large), "too large");
}

}  // namespace
}  // namespace osb
