// What peers ask about snapshots. A capture freezes the sandbox, unless it is frozen already, and lets it go
// on when its files are copied. A peer that goes away meanwhile changes nothing: whoever comes next finds
// what was captured.

#include <signal.h>

#include <algorithm>

#include "base/log.h"
#include "launcher/checks.h"
#include "launcher/requests.h"
#include "sys/process.h"

namespace osb::launcher {
namespace {

constexpr auto kFreezeLimit = std::chrono::seconds(10);

}  // namespace

struct Requests::Capturing {
  From from;
  std::string id, snapshot;
  bool was_frozen = false;
  bool is_cancelled = false;
  Reactor::Clock::time_point give_up = {};
  Fd events = {};
  Forked forked = {};
};

void Requests::on(From from, const CaptureRequest& request) {
  if (auto allowed = check_id(request.snapshot); !allowed) return answer_error(from, allowed.error());
  if (captures_.contains(request.id))
    return answer_error(from, {Code::wrong_state, 0, "the sandbox is being captured"});
  auto was_frozen = sandboxes_.is_to_freeze(request.id);
  if (!was_frozen) return answer_error(from, was_frozen.error());
  auto forked = sandboxes_.capture(request.id, request.snapshot);
  if (!forked) return answer_error(from, forked.error());
  auto capturing = std::make_shared<Capturing>();
  *capturing = {.from = from, .id = request.id, .snapshot = request.snapshot, .was_frozen = *was_frozen};
  capturing->forked = std::move(*forked);
  captures_[request.id] = capturing;
  // Frozen only when everything else is done.
  watch(capturing, capturing->forked.report.get(), [this, capturing] {
    if (is_halfway(capturing->forked)) return freeze_for(capturing);
    finish_when_ended(capturing);
  });
}

void Requests::watch(const std::shared_ptr<Capturing>& capturing, int fd, std::function<void()> then) {
  auto watched = reactor_.watch_once(fd, std::move(then));
  if (watched) return;
  (void)sys::send_signal(capturing->forked.ended.get(), SIGKILL);
  finish_capture(capturing, std::move(watched));
}

void Requests::freeze_for(const std::shared_ptr<Capturing>& capturing) {
  if (capturing->is_cancelled) return finish_when_ended(capturing);
  capturing->give_up = Reactor::Clock::now() + kFreezeLimit;
  if (auto asked = sandboxes_.freeze(capturing->id, true); !asked)
    return give_up(capturing, std::move(asked.error()));
  if (auto events = sandboxes_.open_events(capturing->id)) capturing->events = std::move(*events);
  if (!capture_when_frozen(capturing))
    reactor_.retry([this, capturing] { return capture_when_frozen(capturing); });
}

// False: not yet.
bool Requests::capture_when_frozen(const std::shared_ptr<Capturing>& capturing) {
  auto frozen = sandboxes_.frozen(capturing->events.get());
  if (capturing->is_cancelled) {
    finish_when_ended(capturing);
  } else if (!frozen) {
    give_up(capturing, std::move(frozen.error()));
  } else if (*frozen) {
    // One that has just been killed takes no word, and ends.
    (void)go_on(capturing->forked);
    finish_when_ended(capturing);
  } else if (Reactor::Clock::now() < capturing->give_up) {
    return false;
  } else {
    give_up(capturing, {Code::timeout, ETIMEDOUT, "a process of the sandbox does not stop"});
  }
  return true;
}

void Requests::give_up(const std::shared_ptr<Capturing>& capturing, Error why) {
  (void)sys::send_signal(capturing->forked.ended.get(), SIGKILL);
  finish_capture(capturing, std::unexpected(std::move(why)));
}

void Requests::finish_when_ended(const std::shared_ptr<Capturing>& capturing) {
  watch(capturing, capturing->forked.ended.get(),
        [this, capturing] { finish_capture(capturing, outcome_of(capturing->forked)); });
}

void Requests::finish_capture(const std::shared_ptr<Capturing>& capturing, Result<void> outcome) {
  if (!capturing->was_frozen) (void)sandboxes_.freeze(capturing->id, false);
  captures_.erase(capturing->id);
  if (!outcome) {
    log::warn("sandbox not captured", {{"id", capturing->id}, {"error", outcome.error().message}});
    // What there is of it, unless it was there before.
    if (outcome.error().code != Code::already_exists) (void)sandboxes_.drop_snapshot(capturing->snapshot);
    events_.trashed();
  }
  answer_done(capturing->from, outcome);
}

void Requests::cancel_capture(const std::string& id) {
  auto found = captures_.find(id);
  if (found == captures_.end()) return;
  found->second->is_cancelled = true;
  (void)sys::send_signal(found->second->forked.ended.get(), SIGKILL);
}

void Requests::leave() {
  for (const auto& [id, capturing] : captures_) {
    if (!capturing->was_frozen) (void)sandboxes_.freeze(id, false);
  }
}

void Requests::keep(From from, const std::string& id, Lasting lasting) {
  bool is_captured =
      std::ranges::any_of(captures_, [&](const auto& capture) { return capture.second->snapshot == id; });
  if (is_captured || keeping_.contains(id))
    return answer_error(from, {Code::wrong_state, 0, "the snapshot is being made"});
  if (sandboxes_.find_snapshot(id, lasting)) return answer_kept(from, id, lasting, {});
  keeping_.insert(id);
  auto forked = sandboxes_.keep_snapshot(id, lasting);
  if (!forked) return answer_kept(from, id, lasting, std::unexpected(std::move(forked.error())));
  auto held = std::make_shared<Forked>(std::move(*forked));
  auto watched = reactor_.watch_once(held->ended.get(), [this, from, id, lasting, held] {
    answer_kept(from, id, lasting, outcome_of(*held));
  });
  if (!watched) answer_kept(from, id, lasting, watched);
}

void Requests::answer_kept(From from, const std::string& id, Lasting lasting, const Result<void>& outcome) {
  keeping_.erase(id);
  if (!outcome) return answer_error(from, outcome.error());
  auto found = sandboxes_.find_snapshot(id, lasting);
  if (!found) return answer_error(from, found.error());
  events_.trashed();  // layers that were there before
  const Manifest& manifest = found->manifest;
  answer(from, KeepAnswer{manifest.image, manifest.bytes, manifest.entries, manifest.layers,
                          std::move(found->record)});
}

void Requests::on(From from, const DropRequest& request) {
  for (const auto& [id, capturing] : captures_) {
    if (capturing->snapshot == request.id) return cancel_capture(id), answer(from, Done{});
  }
  if (keeping_.contains(request.id))
    return answer_error(from, {Code::wrong_state, 0, "the snapshot is being made"});
  auto dropped = sandboxes_.drop_snapshot(request.id);
  answer_done(from, dropped);
  if (dropped) events_.trashed();
}

void Requests::on(From from, const SnapshotsRequest& request) {
  auto page = sandboxes_.list_snapshots(request.after, kListPage);
  page ? answer(from, ListAnswer{std::move(*page)}) : answer_error(from, page.error());
}

void Requests::on(From from, const DiffRequest& request) {
  auto pipe = sandboxes_.diff(request.id);
  if (!pipe) return answer_error(from, pipe.error());
  std::vector<Fd> descriptors;
  descriptors.push_back(std::move(*pipe));
  answer(from, DiffAnswer{}, std::move(descriptors));
}

}  // namespace osb::launcher
