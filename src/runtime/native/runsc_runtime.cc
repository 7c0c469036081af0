#include "runtime/native/runsc_runtime.h"

#include <algorithm>

#include "runtime/native/native_sandbox.h"

namespace osb::runtime {
namespace {

// The limit on processes counts those of runsc: some thirty of its own, and one or more behind each program
// inside. It is there for the host; one that is too small for runsc ends the sandbox instead of refusing a
// process.
constexpr int64_t kFewestProcesses = 1024;

}  // namespace

Capabilities runsc_capabilities(Capabilities native) {
  native.snapshots = Ability::cannot(
      "runsc keeps changes of files in its own memory, and what is on the disk of a sandbox that runs is not "
      "what its programs see; use the native runtime for sandboxes that are to be captured");
  native.pids = Ability::cannot(
      "programs under runsc are no processes of this host, which counts those of runsc; their memory and "
      "processor time can be limited");
  return native;
}

RunscRuntime::RunscRuntime(NativeRuntime& native)
    : native_(native), capabilities_(runsc_capabilities(native.capabilities())) {}

Isolation RunscRuntime::isolation() const {
  Isolation out = native_.isolation();
  out.tier =
      "gVisor (runsc): system calls of programs are answered by a kernel in user space, which has a user "
      "namespace, no capabilities and a seccomp filter of its own; around it namespaces and control groups "
      "as in a native sandbox";
  out.missing.push_back(
      "the host's TCP/IP is behind runsc's socket calls, in the sandbox's own network namespace");
  return out;
}

Task<Created<PreparedPtr>> RunscRuntime::prepare(SandboxSpec spec) {
  auto prepared = co_await native_.prepare(std::move(spec));
  if (!prepared) co_return prepared;
  launcher::Plan& plan = static_cast<NativePrepared&>(**prepared).plan;
  plan.kernel = launcher::Plan::Kernel::runsc;
  if (plan.limits.pids) plan.limits.pids = std::max(*plan.limits.pids, kFewestProcesses);
  co_return prepared;
}

Task<Result<std::vector<std::string>>> RunscRuntime::list() { co_return std::vector<std::string>(); }

}  // namespace osb::runtime
