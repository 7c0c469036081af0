#pragma once

// A kernel of a notebook server: one session there, one WebSocket for as long as the context lives. Messages
// are matched to the cell by the id of the request they answer.
//
// Belongs to one loop.

#include <deque>

#include "execd/core.h"
#include "http/websocket.h"
#include "interpreter/jupyter_message.h"
#include "interpreter/jupyter_server.h"
#include "interpreter/kernel_source.h"

namespace osb::interpreter {

class JupyterKernel final : public Kernel, public std::enable_shared_from_this<JupyterKernel> {
 public:
  static std::shared_ptr<JupyterKernel> start(execd::Core& core, JupyterServer server, std::string language,
                                              std::string cwd);

  void listen(std::weak_ptr<KernelListener> listener) override;
  void run(std::string_view id, std::string_view code) override;
  void interrupt() override;
  void destroy() override;

 private:
  JupyterKernel(execd::Core& core, JupyterServer server, std::string language, std::string cwd);
  static io::Task<> serve(std::shared_ptr<JupyterKernel> self);
  static io::Task<> write(std::shared_ptr<JupyterKernel> self);
  static io::Task<> post(std::shared_ptr<JupyterKernel> self, std::string method, std::string path);
  io::Task<Result<void>> talk();
  io::Task<Result<std::string>> find_spec();
  io::Task<Result<void>> open_session(std::string spec);
  io::Task<Result<void>> read_messages();
  void on_message(const JupyterMessage& message);
  void end(std::string reason);

  execd::Core& core_;
  JupyterServer server_;
  std::string language_, cwd_, client_id_;
  std::string session_, kernel_;  // ids there, "" before they are known
  std::optional<http::ClientConnection> connection_;
  std::optional<http::WebSocket> socket_;
  std::deque<std::string> outgoing_;
  io::Event changed_;  // outgoing_ or ended_
  bool ready_ = false, destroyed_ = false;
  std::optional<std::string> ended_;
  std::string current_;  // the cell that runs
  bool idle_ = false, replied_ = false, failed_ = false;
  int64_t count_ = 0;
  std::weak_ptr<KernelListener> listener_;
};

// Kernels of the notebook server that JUPYTER_HOST names.
class JupyterKernels final : public KernelSource {
 public:
  JupyterKernels(execd::Core& core, JupyterServer server) : core_(core), server_(std::move(server)) {}

  Result<std::string> known_name(std::string_view language) const override { return std::string(language); }
  Result<std::shared_ptr<Kernel>> start(const std::string& language, std::string cwd) override;
  void imported(const std::string&, const std::vector<std::string>&) override {}

 private:
  execd::Core& core_;
  JupyterServer server_;
};

}  // namespace osb::interpreter
