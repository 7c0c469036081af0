#include "sys/bpf.h"

#include <gtest/gtest.h>

namespace osb::sys {
namespace {

TEST(Bpf, JumpsSkipWhatLiesBetween) {
  Bpf bpf;
  auto yes = bpf.label(), no = bpf.label();
  bpf.load(0);
  bpf.if_equal(1, yes);
  bpf.if_not_equal(2, no);
  bpf.answer(10);
  bpf.place(yes);
  bpf.answer(11);
  bpf.place(no);
  bpf.answer(12);
  auto program = bpf.assemble();
  ASSERT_TRUE(program);
  ASSERT_EQ(program->size(), 6u);
  EXPECT_EQ((*program)[1].jt, 2);
  EXPECT_EQ((*program)[1].jf, 0);
  EXPECT_EQ((*program)[2].jt, 0);
  EXPECT_EQ((*program)[2].jf, 2);
}

TEST(Bpf, AJumpToNowhereBackOrTooFarIsRefused) {
  Bpf nowhere;
  nowhere.if_equal(1, nowhere.label());
  EXPECT_FALSE(nowhere.assemble());
  Bpf back;
  auto start = back.label();
  back.place(start);
  back.if_equal(1, start);
  EXPECT_FALSE(back.assemble());
  for (int between : {255, 256}) {
    Bpf far;
    auto end = far.label();
    far.if_equal(1, end);
    for (int i = 0; i < between; ++i) far.load(0);
    far.place(end);
    far.answer(0);
    EXPECT_EQ(far.assemble().has_value(), between == 255);
  }
}

TEST(Bpf, OneCallHasItsAnswerAndAllOthersPass) {
  constexpr auto program = answer_one_call(42, SECCOMP_RET_ERRNO | 38);
  EXPECT_EQ(program[1].k, 42u);
  EXPECT_EQ(program[1].jf, 1);
  EXPECT_EQ(program[2].k, SECCOMP_RET_ERRNO | 38);
  EXPECT_EQ(program[3].k, SECCOMP_RET_ALLOW);
}

// What it leads to from each place, by hand: the only jumps are the two that leave for the last line.
TEST(Bpf, OneCommandOfACallHasItsAnswer) {
  constexpr auto program = answer_one_command(42, 16, SECCOMP_RET_ERRNO | 22);
  constexpr size_t kAllow = program.size() - 1;
  EXPECT_EQ(program[0].k, kCallNumber);
  EXPECT_EQ(program[1].k, 42u);
  EXPECT_EQ(2u + program[1].jf, kAllow);
  EXPECT_EQ(program[2].k, low_half(0));
  EXPECT_EQ(program[3].k, 16u);
  EXPECT_EQ(4u + program[3].jf, kAllow);
  EXPECT_EQ(program[4].k, SECCOMP_RET_ERRNO | 22);
  EXPECT_EQ(program[kAllow].k, SECCOMP_RET_ALLOW);
}

}  // namespace
}  // namespace osb::sys
