#include "sys/bpf.h"

namespace osb::sys {
namespace {

constexpr size_t kNowhere = SIZE_MAX;

}  // namespace

Bpf::Label Bpf::label() {
  places_.push_back(kNowhere);
  return places_.size() - 1;
}

void Bpf::place(Label label) { places_.at(label) = program_.size(); }

void Bpf::jump(int condition, uint32_t value, Label to, bool when) {
  jumps_.push_back({program_.size(), to, when});
  add(BPF_JMP | condition | BPF_K, value);
}

Result<std::vector<sock_filter>> Bpf::assemble() const {
  std::vector<sock_filter> program = program_;
  for (const Jump& jump : jumps_) {
    size_t to = places_.at(jump.to);
    if (to == kNowhere || to <= jump.at) return fail(Code::internal, "bpf: a jump to nowhere, or back");
    size_t skipped = to - jump.at - 1;
    if (skipped > UINT8_MAX) return fail(Code::internal, "bpf: a jump that is too long");
    (jump.when ? program[jump.at].jt : program[jump.at].jf) = static_cast<uint8_t>(skipped);
  }
  return program;
}

}  // namespace osb::sys
