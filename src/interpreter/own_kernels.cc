#include "interpreter/own_kernels.h"

#include "base/log.h"
#include "interpreter/bash_kernel.h"
#include "interpreter/language.h"

namespace osb::interpreter {
namespace {

// Long enough for the cell that caused it to go on first.
constexpr auto kParentDelay = std::chrono::milliseconds(300);
constexpr auto kSpareDelay = std::chrono::milliseconds(500);
constexpr auto kSpareLife = std::chrono::minutes(10);
constexpr size_t kMaxModules = 4096, kMaxModuleName = 128;

}  // namespace

OwnKernels::OwnKernels(execd::Core& core) : core_(core), parent_timer_(core.executor) {}

Result<std::string> OwnKernels::known_name(std::string_view language) const {
  if (const Language* found = find_language(language)) return std::string(found->name);
  std::string names;
  for (const Language& known : languages()) names += (names.empty() ? "" : ", ") + std::string(known.name);
  return fail(Code::invalid_argument, "unknown language: " + std::string(language) + "; there are " + names);
}

Result<std::shared_ptr<Kernel>> OwnKernels::start(const std::string& name, std::string cwd) {
  const Language& language = *find_language(name);
  execd::Environment env = core_.command_env();
  KernelStart start{&language, TRY(find_interpreter(language, env)), env.block(), std::move(cwd)};
  if (name == "python") return fork_python(start);
  if (name == "bash") return BashKernel::start(core_, std::move(start.cwd));
  std::shared_ptr<ProcessKernel> kernel = take_spare(start);
  if (!kernel) kernel = TRY(ProcessKernel::start(core_, start));
  make_spare_later(start, kernel);
  return kernel;
}

// ---- Python: forked ----

Result<std::shared_ptr<Kernel>> OwnKernels::fork_python(const KernelStart& start) {
  KernelChannel channel = TRY(KernelChannel::create());
  auto kernel = TRY(ProcessKernel::adopt(core_, std::move(channel.ours)));
  auto parent = python_parent(start);
  if (parent) {
    fork_from(*parent, kernel, start, std::move(channel.theirs), true);
  } else {
    kernel->launch(start, channel.theirs);
  }
  return kernel;
}

void OwnKernels::fork_from(std::shared_ptr<PythonParent> parent, std::shared_ptr<ProcessKernel> kernel,
                           KernelStart start, KernelEnds theirs, bool again) {
  std::string cwd = start.cwd;
  auto forked = [this, kernel, start = std::move(start), again](std::expected<pid_t, KernelEnds> result) {
    if (result) return kernel->set_process(*result);
    // The parent was outdated or has ended: another one, and where even that fails, none.
    auto other = again ? python_parent(start) : Result<std::shared_ptr<PythonParent>>(nullptr);
    if (other && *other) return fork_from(*other, kernel, start, std::move(result.error()), false);
    kernel->launch(start, result.error());
  };
  parent->fork(std::move(cwd), std::move(theirs), std::move(forked));
}

// The present parent if it fits, else a new one.
Result<std::shared_ptr<PythonParent>> OwnKernels::python_parent(const KernelStart& start) {
  if (parent_ && parent_->state() != PythonParent::State::ended && parent_->how().env == start.env &&
      parent_->how().program == start.program) {
    return parent_;
  }
  if (auto old = std::exchange(parent_, nullptr)) old->retire();
  if (auto old = std::exchange(next_parent_, nullptr)) old->retire();
  KernelStart how = start;
  how.cwd = "/";
  // Without modules: whoever waits for it wants it now. They follow in its replacement.
  parent_ = TRY(PythonParent::start(core_, how, {}, [this](PythonParent& parent, const std::string& name) {
    on_parent_changed(parent, name);
  }));
  shared_modules_ = 0;
  if (!modules_.empty()) imported("python", {});
  return parent_;
}

void OwnKernels::imported(const std::string& language, const std::vector<std::string>& modules) {
  if (language != "python") return;
  for (const std::string& name : modules) {
    bool usable = name.size() <= kMaxModuleName && name.find_first_of(" \n") == name.npos;
    if (!usable || modules_.size() >= kMaxModules || !known_modules_.insert(name).second) continue;
    modules_.push_back(name);
  }
  if (modules_.size() == shared_modules_ || !parent_) return;
  parent_timer_.expires_after(kParentDelay);
  parent_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) replace_parent();
  });
}

void OwnKernels::replace_parent() {
  if (!parent_ || modules_.size() == shared_modules_) return;
  if (auto old = std::exchange(next_parent_, nullptr)) old->retire();
  std::vector<std::string> wanted;
  for (const std::string& name : modules_) {
    std::string package = name.substr(0, name.find('.'));
    if (!unshareable_.contains(package)) wanted.push_back(name);
  }
  shared_modules_ = modules_.size();
  auto next = PythonParent::start(
      core_, parent_->how(), wanted,
      [this](PythonParent& parent, const std::string& name) { on_parent_changed(parent, name); });
  if (next) next_parent_ = std::move(*next);
}

void OwnKernels::on_parent_changed(PythonParent& parent, const std::string& unshareable) {
  if (&parent == parent_.get() && parent.state() == PythonParent::State::ended) parent_.reset();
  if (&parent != next_parent_.get()) return;
  if (parent.state() == PythonParent::State::ready) {
    if (auto old = std::exchange(parent_, std::move(next_parent_))) old->retire();
    next_parent_.reset();
    return;
  }
  next_parent_.reset();
  if (unshareable.empty()) return;
  log::info("a Python module is not shared with later contexts", {{"module", unshareable}});
  unshareable_.insert(unshareable.substr(0, unshareable.find('.')));
  shared_modules_ = 0;
  replace_parent();
}

// ---- All others: spares ----

std::shared_ptr<ProcessKernel> OwnKernels::take_spare(const KernelStart& start) {
  auto found = spares_.find(start.language->name);
  if (found == spares_.end()) return nullptr;
  auto kernel = std::exchange(found->second.kernel, nullptr);
  if (kernel && !kernel->ended() && found->second.how == start) return kernel;
  if (kernel) kernel->destroy();
  return nullptr;
}

void OwnKernels::make_spare_later(const KernelStart& start, const std::shared_ptr<ProcessKernel>& kernel) {
  if (start.cwd != core_.cwd) return;
  Spare& spare = spares_.try_emplace(std::string(start.language->name), core_.executor).first->second;
  spare.how = start;
  wait_for_calm(spare, kernel);
}

// Until the kernel that somebody waits for is ready: a spare would only compete with it. One that fails to
// start gets no spare.
void OwnKernels::wait_for_calm(Spare& spare, std::weak_ptr<ProcessKernel> kernel) {
  spare.timer.expires_after(kSpareDelay);
  spare.timer.async_wait([this, &spare, kernel](const boost::system::error_code& error) {
    auto present = kernel.lock();
    if (error || !present || present->ended()) return;
    if (present->ready()) return make_spare(spare);
    wait_for_calm(spare, kernel);
  });
}

void OwnKernels::make_spare(Spare& spare) {
  if (spare.kernel || core_.ended) return;
  auto kernel = ProcessKernel::start(core_, spare.how);
  if (!kernel) return;
  spare.kernel = std::move(*kernel);
  spare.timer.expires_after(kSpareLife);
  spare.timer.async_wait([&spare](const boost::system::error_code& error) {
    if (!error && spare.kernel) std::exchange(spare.kernel, nullptr)->destroy();
  });
}

}  // namespace osb::interpreter
