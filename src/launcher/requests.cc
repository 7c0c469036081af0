#include "launcher/requests.h"

#include <utility>

#include "base/log.h"
#include "launcher/checks.h"

namespace osb::launcher {
namespace {

constexpr auto kFreezeLimit = std::chrono::seconds(10);
constexpr size_t kMostErrorText = 4096;

}  // namespace

struct Requests::Ending {
  From from;
  std::string id;
  bool keep_files = false;
};

struct Requests::Freezing {
  From from;
  std::string id;
  Reactor::Clock::time_point give_up;
  Fd events;
};

void Requests::answer_error(From from, const Error& error) {
  if (from.peer == kNobody) return;
  Answer answer;
  answer.tag = from.tag;
  answer.error = error.sys_errno ? error.sys_errno : EIO;
  answer.code = static_cast<uint32_t>(error.code);
  answer.message = error.message.substr(0, kMostErrorText);
  events_.answer(from.peer, std::move(answer));
}

void Requests::answer_done(From from, const Result<void>& result) {
  result ? answer(from, Done{}) : answer_error(from, result.error());
}

void Requests::handle(PeerId peer, const Request& request) {
  From from{peer, request.tag};
  with_request_of(request.verb, [&](auto empty) {
    auto body = decode_body<decltype(empty)>(request.body);
    if (!body) return answer_error(from, body.error());
    // Ids become names of directories and groups; no verb gets one that is not checked.
    if constexpr (requires { body->id; }) {
      if (auto allowed = check_id(body->id); !allowed) return answer_error(from, allowed.error());
    }
    on(from, std::move(*body));
  });
}

void Requests::on(From from, StartRequest request) {
  auto plan = std::make_unique<Plan>(std::move(request.plan));
  auto starting = sandboxes_.start(*plan);
  if (!starting) return answer_error(from, starting.error());
  int report = starting->report.get();
  std::string id = plan->id;
  auto watched = reactor_.watch_once(
      report, [this, from, plan = std::move(plan), starting = std::move(*starting)]() mutable {
        finish_start(from, std::move(starting), *plan);
      });
  if (watched) return;
  answer_error(from, watched.error());
  end({}, id, false);
}

void Requests::finish_start(From from, Starting starting, const Plan& plan) {
  auto pidfd = sandboxes_.finish(starting, plan);
  if (!pidfd) {
    log::warn("sandbox did not start", {{"id", starting.id}, {"error", pidfd.error().message}});
    answer_error(from, pidfd.error());
    return end({}, starting.id, false);
  }
  std::vector<Fd> descriptors;
  descriptors.push_back(std::move(*pidfd));
  answer(from, StartAnswer{starting.started}, std::move(descriptors));
  events_.started();
}

void Requests::end(From from, const std::string& id, bool keep_files) {
  cancel_capture(id);
  auto first_process = sandboxes_.kill(id);
  if (!first_process) return answer_error(from, first_process.error());
  Ending ending{from, id, keep_files};
  if (!first_process->valid()) return end_when_empty(std::move(ending));
  int fd = first_process->get();
  auto watched =
      reactor_.watch_once(fd, [this, ending, held = std::move(*first_process)] { end_when_empty(ending); });
  // Without it: as if it were gone already. The group says when it is.
  if (!watched) end_when_empty(std::move(ending));
}

void Requests::end_when_empty(Ending ending) {
  if (finish_end(ending)) return;
  reactor_.retry([this, ending = std::move(ending)] { return finish_end(ending); });
}

bool Requests::finish_end(const Ending& ending) {
  auto removed = sandboxes_.remove(ending.id, ending.keep_files);
  // The last process is gone, but the kernel may hold its group for a moment longer.
  if (!removed && removed.error().code == Code::exhausted) return false;
  if (!removed)
    log::error("cannot remove a sandbox", {{"id", ending.id}, {"error", removed.error().message}});
  answer_done(ending.from, removed);
  if (!removed) return true;
  if (!ending.keep_files) events_.trashed();
  events_.removed();
  return true;
}

void Requests::on(From from, const ListRequest& request) {
  auto page = sandboxes_.list(request.after, kListPage);
  page ? answer(from, ListAnswer{std::move(*page)}) : answer_error(from, page.error());
}

void Requests::on(From from, const AdoptRequest& request) {
  auto pidfd = sandboxes_.adopt(request.id, request.first_process);
  if (!pidfd) return answer_error(from, pidfd.error());
  auto frozen = sandboxes_.is_to_freeze(request.id);
  if (!frozen) return answer_error(from, frozen.error());
  std::vector<Fd> descriptors;
  descriptors.push_back(std::move(*pidfd));
  answer(from, AdoptAnswer{*frozen}, std::move(descriptors));
}

void Requests::on(From from, const SocketsRequest& request) {
  if (request.count == 0 || request.count > kMaxDescriptors)
    return answer_error(from, {Code::permission_denied, 0, "refused: too many sockets at once, or none"});
  auto sockets = sandboxes_.sockets(request.id, request.count);
  if (!sockets) return answer_error(from, sockets.error());
  answer(from, SocketsAnswer{}, std::move(*sockets));
}

void Requests::on(From from, const ListenersRequest& request) {
  auto listeners = sandboxes_.listeners(request.id);
  if (!listeners) return answer_error(from, listeners.error());
  answer(from, ListenersAnswer{std::move(listeners->id), listeners->is_open},
         std::move(listeners->descriptors));
}

void Requests::on(From from, const CallersRequest&) {
  if (sandboxes_.callers() < 0)
    return answer_error(from, {Code::unsupported, 0, "refused: no sandbox has a way out"});
  listening_ = from;
  answer_caller();
}

void Requests::on(From from, const ContainerRequest& request) {
  answer_done(from, sandboxes_.add_container(request.id, request.container, request.pid));
}

void Requests::on(From from, const EngineRequest&) {
  auto connection = sandboxes_.connect_engine();
  if (!connection) return answer_error(from, connection.error());
  std::vector<Fd> descriptors;
  descriptors.push_back(std::move(*connection));
  answer(from, EngineAnswer{}, std::move(descriptors));
}

void Requests::answer_caller() {
  // Whoever speaks waits for the next life of the peer, not for an answer that nobody reads.
  if (!listening_ || !events_.is_there(listening_->peer)) return listening_.reset();
  if (auto caller = sandboxes_.next_caller()) {
    From from = *std::exchange(listening_, std::nullopt);
    return answer(from, ListenersAnswer{std::move(caller->id), caller->is_open},
                  std::move(caller->descriptors));
  }
  if (watches_callers_) return;
  auto watched = reactor_.watch_once(sandboxes_.callers(), [this] {
    watches_callers_ = false;
    answer_caller();
  });
  if (!watched) return answer_error(*std::exchange(listening_, std::nullopt), watched.error());
  watches_callers_ = true;
}

void Requests::on(From from, const OomsRequest& request) {
  auto count = sandboxes_.oom_kills(request.id);
  count ? answer(from, OomsAnswer{*count}) : answer_error(from, count.error());
}

void Requests::on(From from, const FreezeRequest& request) {
  auto asked = sandboxes_.freeze(request.id, true);
  if (!asked) return answer_error(from, asked.error());
  Freezing freezing{from, request.id, Reactor::Clock::now() + kFreezeLimit, Fd()};
  if (auto events = sandboxes_.open_events(request.id)) freezing.events = std::move(*events);
  if (finish_freeze(freezing)) return;
  // Not by waiting for an event of cgroup.events: the kernel sends at most one in ten milliseconds.
  reactor_.retry([this, freezing = std::move(freezing)] { return finish_freeze(freezing); });
}

bool Requests::finish_freeze(const Freezing& freezing) {
  // A new server has taken the sandbox over as paused: it stays so.
  if (!events_.is_there(freezing.from.peer)) return true;
  auto frozen = sandboxes_.frozen(freezing.events.get());
  if (frozen && !*frozen && Reactor::Clock::now() < freezing.give_up) return false;
  if (frozen && *frozen) {
    answer(freezing.from, Done{});
    return true;
  }
  (void)sandboxes_.freeze(freezing.id, false);
  answer_error(freezing.from, frozen
                                  ? Error{Code::timeout, ETIMEDOUT, "a process of the sandbox does not stop"}
                                  : frozen.error());
  return true;
}

void Requests::on(From from, const ThawRequest& request) {
  // Whoever wants it to go on comes first: what is copied of a sandbox that runs is of no use.
  cancel_capture(request.id);
  auto was_frozen = sandboxes_.is_to_freeze(request.id);
  auto thawed = sandboxes_.freeze(request.id, false);
  thawed ? answer(from, ThawAnswer{was_frozen.value_or(true)}) : answer_error(from, thawed.error());
}

void Requests::on(From from, const RecallRequest& request) {
  auto recalled = sandboxes_.recall(request.id);
  if (!recalled) return answer_error(from, recalled.error());
  answer(from, RecallAnswer{std::move(recalled->record), recalled->first_process});
}

void Requests::on(From from, const RecordRequest& request) {
  answer_done(from, sandboxes_.keep_record(request.id, request.record));
}

void Requests::on(From from, const HealthRequest&) { answer_done(from, sandboxes_.health()); }

void Requests::on(From from, const ImagesRequest&) {
  auto channel = sandboxes_.start_image_keeper();
  if (!channel) return answer_error(from, channel.error());
  std::vector<Fd> descriptors;
  descriptors.push_back(std::move(*channel));
  answer(from, ImagesAnswer{}, std::move(descriptors));
}

}  // namespace osb::launcher
