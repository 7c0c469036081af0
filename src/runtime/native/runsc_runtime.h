#pragma once

// Sandboxes of the native runtime that have a kernel of their own: runsc (gVisor) instead of the host's
// between their programs and the host. The same launcher makes, keeps and ends them in the same way
// (launcher/runsc_child.h), so all of it is the native runtime's work; this says what is asked for, and what
// cannot be had.

#include "runtime/native/native_runtime.h"

namespace osb::runtime {

class RunscRuntime : public Runtime {
 public:
  // Borrows the native runtime, which is there for longer.
  explicit RunscRuntime(NativeRuntime& native);

  std::string_view name() const override { return "runsc"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  Isolation isolation() const override;
  Task<Result<void>> health() override { return native_.health(); }
  Task<Created<PreparedPtr>> prepare(SandboxSpec spec) override;
  std::string preparing(const std::string& handle) const override { return native_.preparing(handle); }
  ImageLibrary* images() override { return native_.images(); }
  Task<Created<std::string>> start(PreparedPtr prepared, Claim claim) override {
    return native_.start(std::move(prepared), std::move(claim));
  }
  Task<Created<Warm>> warm(PreparedPtr prepared, std::string record) override {
    return native_.warm(std::move(prepared), std::move(record));
  }
  Task<Created<void>> claim(std::string handle, Claim claim, std::optional<NetworkPolicy> network) override {
    return native_.claim(std::move(handle), std::move(claim), std::move(network));
  }
  Task<Adoption> adopt_warm(std::string handle, Warm warm) override {
    return native_.adopt_warm(std::move(handle), std::move(warm));
  }
  Task<Result<void>> destroy(std::string handle) override { return native_.destroy(std::move(handle)); }
  // Nothing: the native runtime lists what the launcher has, and a record says whose it is.
  Task<Result<std::vector<std::string>>> list() override;
  Task<Adoption> adopt(std::string handle, std::string identity) override {
    return native_.adopt(std::move(handle), std::move(identity));
  }
  Task<Result<End>> wait(std::string handle) override { return native_.wait(std::move(handle)); }
  Task<Result<void>> settle(std::string handle) override { return native_.settle(std::move(handle)); }
  Task<Result<void>> pause(std::string handle) override { return native_.pause(std::move(handle)); }
  Task<Result<bool>> resume(std::string handle) override { return native_.resume(std::move(handle)); }
  Task<Result<Recalled>> recall(std::string handle) override { return native_.recall(std::move(handle)); }
  Task<Result<void>> keep_record(std::string handle, std::string record) override {
    return native_.keep_record(std::move(handle), std::move(record));
  }
  Task<Result<io::Stream>> connect(std::string handle, uint16_t port) override {
    return native_.connect(std::move(handle), port);
  }
  Task<Result<Output>> logs(std::string handle) override { return native_.logs(std::move(handle)); }
  Task<Result<std::optional<NetworkPolicy>>> network_of(std::string handle) override {
    return native_.network_of(std::move(handle));
  }
  Task<Result<std::vector<NamedVolume>>> list_volumes(std::string owner) override {
    return native_.list_volumes(std::move(owner));
  }
  Task<Result<void>> remove_volume(std::string owner, std::string name) override {
    return native_.remove_volume(std::move(owner), std::move(name));
  }

 private:
  NativeRuntime& native_;
  Capabilities capabilities_;
};

// What of the native runtime's abilities is left under runsc.
Capabilities runsc_capabilities(Capabilities native);

}  // namespace osb::runtime
