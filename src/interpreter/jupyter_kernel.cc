#include "interpreter/jupyter_kernel.h"

#include <boost/json/object.hpp>

#include "base/ids.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/decode.h"
#include "json/escape.h"

namespace osb::interpreter {
namespace {

namespace bj = boost::json;

constexpr auto kServerStart = std::chrono::seconds(25);
constexpr auto kServerPoll = std::chrono::milliseconds(200);
constexpr auto kHandshake = std::chrono::seconds(30);
constexpr size_t kMaxMessage = 64 << 20;

std::string text_at(const bj::value& value, std::string_view name) {
  if (!value.is_object()) return "";
  const bj::value* found = value.as_object().if_contains(name);
  return found && found->is_string() ? std::string(found->as_string()) : "";
}

const bj::value& object_at(const bj::value& value, std::string_view name) {
  static const bj::value none{bj::object()};
  const bj::value* found = value.is_object() ? value.as_object().if_contains(name) : nullptr;
  return found && found->is_object() ? *found : none;
}

}  // namespace

JupyterKernel::JupyterKernel(execd::Core& core, JupyterServer server, std::string language, std::string cwd)
    : core_(core),
      server_(std::move(server)),
      language_(std::move(language)),
      cwd_(std::move(cwd)),
      client_id_(new_hex_id()),
      changed_(core.executor) {}

std::shared_ptr<JupyterKernel> JupyterKernel::start(execd::Core& core, JupyterServer server,
                                                    std::string language, std::string cwd) {
  std::shared_ptr<JupyterKernel> self(
      new JupyterKernel(core, std::move(server), std::move(language), std::move(cwd)));
  core.tasks.spawn(serve(self));
  return self;
}

io::Task<> JupyterKernel::serve(std::shared_ptr<JupyterKernel> self) {
  auto talked = co_await self->talk();
  self->end(talked ? "the notebook server closed the connection" : talked.error().message);
}

io::Task<Result<void>> JupyterKernel::talk() {
  std::string spec = CO_TRY(co_await find_spec());
  CO_TRY(co_await open_session(std::move(spec)));
  if (destroyed_) {
    core_.tasks.spawn(post(shared_from_this(), "DELETE", "/api/sessions/" + session_));
    co_return fail(Code::cancelled, "it was ended");
  }
  connection_ = CO_TRY(co_await io::with_deadline(kHandshake, "notebook server", server_.connect()));
  http::WebSocketLimits limits;
  limits.message_bytes = kMaxMessage;
  limits.silence = std::chrono::hours(24 * 365);  // an idle kernel says nothing; a broken connection does
  auto head = server_.head("GET", "/api/kernels/" + kernel_ + "/channels?session_id=" + client_id_);
  socket_ = CO_TRY(co_await io::with_deadline(
      kHandshake, "notebook server", http::connect_websocket(*connection_, std::move(head), limits)));
  core_.tasks.spawn(write(shared_from_this()));
  if (language_ == "python" && !cwd_.empty()) {
    std::string code = "import os\nos.chdir(";
    json::append_minimal_string(code, cwd_);
    outgoing_.push_back(encode_execute(new_hex_id(), client_id_, code + ")\ndel os", true));
    changed_.set();
  }
  ready_ = true;
  if (auto listener = listener_.lock()) listener->on_ready();
  co_return co_await read_messages();
}

// The kernel spec of the language; waits while the server is still starting.
io::Task<Result<std::string>> JupyterKernel::find_spec() {
  auto deadline = std::chrono::steady_clock::now() + kServerStart;
  Result<bj::value> answer = co_await server_.call("GET", "/api/kernelspecs");
  while (!answer && answer.error().code == Code::unavailable && !destroyed_) {
    if (std::chrono::steady_clock::now() >= deadline) break;
    co_await io::sleep_for(kServerPoll);
    answer = co_await server_.call("GET", "/api/kernelspecs");
  }
  if (!answer) {
    co_return fail(answer.error().code,
                   answer.error().message + "; start it, or unset JUPYTER_HOST to use the kernels of execd");
  }
  std::string found, others;
  for (const auto& entry : object_at(*answer, "kernelspecs").as_object()) {
    std::string declared = text_at(object_at(entry.value(), "spec"), "language");
    others += (others.empty() ? "" : ", ") + declared;
    // One named "python3" usually belongs to the server itself: taken only when there is no other.
    if (iequals(declared, language_) && (found.empty() || found == "python3")) found = entry.key();
  }
  if (found.empty()) {
    co_return fail(Code::not_found, "unknown language: " + language_ + "; the notebook server has " + others);
  }
  co_return found;
}

io::Task<Result<void>> JupyterKernel::open_session(std::string spec) {
  std::string name = new_hex_id(), body = "{\"path\":\"" + name + ".ipynb\",\"name\":\"" + name +
                                          "\",\"type\":\"notebook\",\"kernel\":{\"name\":";
  json::append_minimal_string(body, spec);
  auto answer = CO_TRY(co_await server_.call("POST", "/api/sessions", body + "}}"));
  session_ = percent_encode(text_at(answer, "id"));
  kernel_ = percent_encode(text_at(object_at(answer, "kernel"), "id"));
  if (session_.empty() || kernel_.empty()) {
    co_return fail(Code::corrupt, "the notebook server made a session without ids");
  }
  co_return Result<void>{};
}

io::Task<> JupyterKernel::write(std::shared_ptr<JupyterKernel> self) {
  while (!self->ended_) {
    while (!self->outgoing_.empty()) {
      std::string text = std::move(self->outgoing_.front());
      self->outgoing_.pop_front();
      if (!co_await self->socket_->send_text(text)) co_return;
    }
    self->changed_.reset();
    co_await self->changed_.wait();
  }
}

io::Task<Result<void>> JupyterKernel::read_messages() {
  while (!ended_) {
    auto message = CO_TRY(co_await socket_->read());
    if (!message) break;
    if (!message->text) continue;
    auto parsed = parse_jupyter(message->data);
    if (parsed) {
      on_message(*parsed);
    } else {
      log::warn("a message of the notebook server is ignored", {{"reason", parsed.error().message}});
    }
  }
  co_return Result<void>{};
}

void JupyterKernel::on_message(const JupyterMessage& message) {
  using Kind = JupyterMessage::Kind;
  if (message.kind == Kind::restarting)
    return end("the kernel process has ended; the notebook server restarts it");
  auto listener = listener_.lock();
  if (!listener || current_.empty() || message.parent != current_) return;
  if (message.kind == Kind::stream) listener->on_output(message.stream, message.text);
  if (message.kind == Kind::shown) listener->on_message(message.message);
  if (message.kind == Kind::error) {
    failed_ = true;
    listener->on_message(message.message);
  }
  if (message.kind == Kind::reply) {
    replied_ = true;
    count_ = message.message.count;
    // A kernel may tell of its error in the reply only.
    if (message.message.op == KernelMessage::Op::error && !failed_) listener->on_message(message.message);
  }
  if (message.kind == Kind::idle) idle_ = true;
  if (!idle_ || !replied_) return;
  KernelMessage done;
  done.op = KernelMessage::Op::done;
  done.id = std::exchange(current_, "");
  done.count = count_;
  listener->on_message(done);
}

void JupyterKernel::listen(std::weak_ptr<KernelListener> listener) {
  listener_ = std::move(listener);
  auto present = listener_.lock();
  if (!present) return;
  if (ended_) {
    present->on_end(*ended_);
  } else if (ready_) {
    present->on_ready();
  }
}

void JupyterKernel::run(std::string_view id, std::string_view code) {
  current_ = id;
  idle_ = replied_ = failed_ = false;
  outgoing_.push_back(encode_execute(id, client_id_, code, false));
  changed_.set();
}

void JupyterKernel::interrupt() {
  if (!kernel_.empty()) {
    core_.tasks.spawn(post(shared_from_this(), "POST", "/api/kernels/" + kernel_ + "/interrupt"));
  }
}

io::Task<> JupyterKernel::post(std::shared_ptr<JupyterKernel> self, std::string method, std::string path) {
  auto answer = co_await self->server_.call(method, path);
  if (!answer) log::warn("the notebook server refuses", {{"reason", answer.error().message}});
}

void JupyterKernel::destroy() {
  listener_.reset();
  destroyed_ = true;
  if (!session_.empty()) core_.tasks.spawn(post(shared_from_this(), "DELETE", "/api/sessions/" + session_));
  end("it was ended");
}

void JupyterKernel::end(std::string reason) {
  if (ended_) return;
  ended_ = std::move(reason);
  changed_.set();
  boost::system::error_code ignored;
  if (connection_) connection_->socket().shutdown(io::Socket::shutdown_both, ignored);
  if (auto listener = listener_.lock()) listener->on_end(*ended_);
}

Result<std::shared_ptr<Kernel>> JupyterKernels::start(const std::string& language, std::string cwd) {
  return std::shared_ptr<Kernel>(JupyterKernel::start(core_, server_, language, std::move(cwd)));
}

}  // namespace osb::interpreter
