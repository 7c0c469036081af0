#include "interpreter/python_parent.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "base/strings.h"
#include "execd/proc_stat.h"
#include "json/escape.h"
#include "sys/descriptors.h"

namespace osb::interpreter {
namespace {

constexpr size_t kReadSize = 4096;

}  // namespace

Result<std::shared_ptr<PythonParent>> PythonParent::start(execd::Core& core, const KernelStart& start,
                                                          const std::vector<std::string>& modules,
                                                          Changed changed) {
  int source = TRY(kernel_source_file(*start.language));
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return fail_errno("socketpair");
  Fd ours(ends[0]), theirs(ends[1]);
  execd::SpawnRequest request = start.request();
  request.argv.push_back("parent");
  request.more = {{theirs.get(), 3}, {source, 4}};
  request.credentials = core.identity;
  auto pid = execd::spawn(std::move(request));
  if (!pid) return fail(code_from_errno(pid.error().code), pid.error().message);
  auto socket = TRY(io::adopt(core.executor, std::move(ours)));
  std::shared_ptr<PythonParent> self(new PythonParent(core, start, std::move(socket), std::move(changed)));
  self->pid_ = *pid;
  core.reaper.watch(*pid, [self](execd::ExitStatus) {
    self->pid_ = -1;
    self->end("");
  });
  std::string names;
  for (const std::string& name : modules) names += (names.empty() ? "" : " ") + name;
  std::string json = "{\"op\":\"start\",\"modules\":";
  json::append_minimal_string(json, names);
  self->send(json + "}", nullptr);
  core.tasks.spawn(read_frames(self));
  return self;
}

// A frame, with descriptors that go along. The frames are small and answered one by one, so that one which
// does not fit into the socket's buffer means a parent that does not read.
bool PythonParent::send(std::string_view json, const KernelEnds* ends) {
  std::string frame = encode_frame(json);
  std::vector<int> descriptors;
  if (ends) descriptors = {ends->out.get(), ends->err.get(), ends->socket.get()};
  return sys::send_with_descriptors(socket_.native_handle(), frame, descriptors, MSG_DONTWAIT) == 0;
}

io::Task<> PythonParent::read_frames(std::shared_ptr<PythonParent> self) {
  char piece[kReadSize];
  while (self->state_ != State::ended) {
    auto n = co_await io::read_some(self->socket_, piece);
    if (!n || *n == 0) break;
    self->frames_.feed({piece, *n});
    while (self->state_ != State::ended) {
      auto frame = self->frames_.next();
      if (!frame) co_return self->end("");
      if (!*frame) break;
      auto message = parse_message(**frame);
      if (!message) co_return self->end("");
      self->on_message(*message);
    }
  }
  self->end("");
}

void PythonParent::on_message(const KernelMessage& message) {
  switch (message.op) {
    case KernelMessage::Op::ready:
      state_ = State::ready;
      if (changed_) changed_(*this, "");
      return;
    case KernelMessage::Op::stale:
      return end(message.names.empty() ? "" : message.names.front());
    case KernelMessage::Op::forked: {
      if (orders_.empty() || !orders_.front().sent) return end("");
      Order order = std::move(orders_.front());
      orders_.pop_front();
      pid_t child = own_child(message.pid);
      if (child > 0) {
        order.ends = {};
        order.forked(child);
      } else {
        order.forked(std::unexpected(std::move(order.ends)));
      }
      if (retired_ && orders_.empty()) end("");
      return;
    }
    default:
      return;
  }
}

// What the parent says is said by a process of the sandbox: a pid that is not its child's must not get
// signals from execd. 0 when it is not. A kernel that has ended already counts as not its child.
pid_t PythonParent::own_child(int64_t pid) const {
  if (pid <= 1 || pid > INT32_MAX || pid_ <= 1) return 0;
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  auto stat = text ? execd::parse_proc_stat(*text) : std::nullopt;
  return stat && stat->parent == pid_ ? static_cast<pid_t>(pid) : 0;
}

void PythonParent::fork(std::string cwd, KernelEnds theirs, Forked forked) {
  if (state_ == State::ended || retired_) return forked(std::unexpected(std::move(theirs)));
  // Sent even before the parent is ready: it reads one when it can, and nobody has to wake up in between.
  orders_.push_back({std::move(cwd), std::move(theirs), std::move(forked)});
  send_orders();
}

void PythonParent::send_orders() {
  for (Order& order : orders_) {
    if (order.sent) continue;
    std::string json = "{\"op\":\"fork\",\"cwd\":";
    json::append_minimal_string(json, order.cwd);
    if (!send(json + "}", &order.ends)) return end("");
    order.sent = true;
  }
}

void PythonParent::retire() {
  retired_ = true;
  if (orders_.empty()) end("");
}

void PythonParent::end(const std::string& unshareable) {
  if (state_ == State::ended) return;
  auto self = shared_from_this();
  state_ = State::ended;
  boost::system::error_code ignored;
  socket_.shutdown(io::Socket::shutdown_both, ignored);
  if (pid_ > 1) ::kill(pid_, SIGKILL);  // not its group: a child may still be in it
  auto changed = std::exchange(changed_, nullptr);
  if (changed) changed(*this, unshareable);
  for (Order& order : std::exchange(orders_, {})) order.forked(std::unexpected(std::move(order.ends)));
}

}  // namespace osb::interpreter
