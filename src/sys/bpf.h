#pragma once

// Programs for seccomp(2), with names for the places that are jumped to: nobody counts instructions.

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"

namespace osb::sys {

// Of a seccomp_data: the number of the call, and the halves of its arguments (of the order of this machine's
// bytes). The kernel uses the low half of what is an int, whatever the other one has.
inline constexpr uint32_t kCallNumber = offsetof(seccomp_data, nr);
constexpr uint32_t low_half(int argument) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) +
                               sizeof(uint64_t) * static_cast<size_t>(argument));
}
constexpr uint32_t high_half(int argument) {
  return low_half(argument) + static_cast<uint32_t>(sizeof(uint32_t));
}

// Every call is allowed but one, which gets this answer. Allocates nothing.
constexpr std::array<sock_filter, 4> answer_one_call(uint32_t call, uint32_t answer) {
  return {{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
           {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
           {BPF_RET | BPF_K, 0, 0, answer},
           {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
}

// The same for one command of a call: what its first argument says, an int.
constexpr std::array<sock_filter, 6> answer_one_command(uint32_t call, uint32_t command, uint32_t answer) {
  return {{{BPF_LD | BPF_W | BPF_ABS, 0, 0, kCallNumber},
           {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, call},
           {BPF_LD | BPF_W | BPF_ABS, 0, 0, low_half(0)},
           {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, command},
           {BPF_RET | BPF_K, 0, 0, answer},
           {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
}

class Bpf {
 public:
  using Label = size_t;

  // A place to jump to, which is said later: jumps go forward only.
  Label label();
  void place(Label label);

  // Into the accumulator: part of a seccomp_data.
  void load(uint32_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset); }
  void mask(uint32_t bits) { add(BPF_ALU | BPF_AND | BPF_K, bits); }
  void answer(uint32_t value) { add(BPF_RET | BPF_K, value); }

  // Jumps when it is so, or when it is not; else goes on.
  void if_equal(uint32_t value, Label to) { jump(BPF_JEQ, value, to, true); }
  void if_not_equal(uint32_t value, Label to) { jump(BPF_JEQ, value, to, false); }
  void if_at_least(uint32_t value, Label to) { jump(BPF_JGE, value, to, true); }
  void if_less(uint32_t value, Label to) { jump(BPF_JGE, value, to, false); }
  void if_no_bit(uint32_t bits, Label to) { jump(BPF_JSET, bits, to, false); }

  // An error when a place was never said or is too far away.
  Result<std::vector<sock_filter>> assemble() const;

 private:
  struct Jump {
    size_t at;
    Label to;
    bool when;
  };
  void add(int code, uint32_t value) { program_.push_back({static_cast<uint16_t>(code), 0, 0, value}); }
  void jump(int condition, uint32_t value, Label to, bool when);

  std::vector<sock_filter> program_;
  std::vector<Jump> jumps_;
  std::vector<size_t> places_;  // by label
};

}  // namespace osb::sys
