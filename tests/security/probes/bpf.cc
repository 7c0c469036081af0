#include <linux/bpf.h>

#include <cstring>

#include "tools.h"

namespace osb::probe {
namespace {

int bpf(int command, const bpf_attr& attr) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attr, sizeof attr));
}

void run(Attempts& a, Args) {
  bpf_attr attr = {};
  attr.map_type = BPF_MAP_TYPE_ARRAY, attr.key_size = 4, attr.value_size = 8, attr.max_entries = 1;
  File map = bpf(BPF_MAP_CREATE, attr);
  a.call("bpf(2)", "map", map.fd());

  bpf_insn program[2] = {};  // return 0
  program[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  program[1].code = BPF_JMP | BPF_EXIT;
  for (const auto type : {BPF_PROG_TYPE_SOCKET_FILTER, BPF_PROG_TYPE_KPROBE}) {
    std::memset(&attr, 0, sizeof attr);
    attr.prog_type = type;
    attr.insns = reinterpret_cast<uint64_t>(program), attr.insn_cnt = 2;
    attr.license = reinterpret_cast<uint64_t>("GPL");
    File loaded = bpf(BPF_PROG_LOAD, attr);
    a.call("bpf(2)", type == BPF_PROG_TYPE_KPROBE ? "kernel probe" : "socket filter", loaded.fd());
  }
  std::memset(&attr, 0, sizeof attr);
  a.gate("bpf(2)", "list the host's programs", bpf(BPF_PROG_GET_NEXT_ID, attr));
}

}  // namespace

extern const Probe probe_bpf = {"bpf", "load eBPF maps and programs", nullptr, run};

}  // namespace osb::probe
