#pragma once

// What peers ask for, carried out. Some requests take their time: a start is answered when execd runs, an end
// when no process is left, a freeze when every process has stopped; others go on meanwhile.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "launcher/messages/all.h"
#include "launcher/protocol.h"
#include "launcher/reactor.h"
#include "launcher/sandbox_table.h"

namespace osb::launcher {

// One life of one peer: a service that is started again is another one, and hears nothing of what its
// predecessor asked for.
using PeerId = uint64_t;
inline constexpr PeerId kNobody = 0;

class Requests {
 public:
  // What others do when something has happened.
  struct Events {
    std::function<void(PeerId, Answer)> answer;
    std::function<bool(PeerId)> is_there;
    std::function<void()> started;  // a sandbox
    std::function<void()> removed;  // its processes
    std::function<void()> trashed;  // its files
  };
  Requests(SandboxTable& sandboxes, Reactor& reactor, Events events)
      : sandboxes_(sandboxes), reactor_(reactor), events_(std::move(events)) {}

  // The peer may ask for it; see Channel.
  void handle(PeerId peer, const Request& request);
  // At the end of the launcher, with which its children end: no sandbox stays frozen for a snapshot.
  void leave();

 private:
  struct From {
    PeerId peer = kNobody;
    uint64_t tag = 0;
  };
  struct Ending;
  struct Freezing;
  struct Capturing;

  void on(From from, StartRequest request);
  void on(From from, const StopRequest& request) { end(from, request.id, true); }
  void on(From from, const DestroyRequest& request) { end(from, request.id, false); }
  void on(From from, const ListRequest& request);
  void on(From from, const AdoptRequest& request);
  void on(From from, const SocketsRequest& request);
  void on(From from, const OomsRequest& request);
  void on(From from, const FreezeRequest& request);
  void on(From from, const ThawRequest& request);
  void on(From from, const RecallRequest& request);
  void on(From from, const RecordRequest& request);
  void on(From from, const HealthRequest& request);
  void on(From from, const ImagesRequest& request);
  void on(From from, const CaptureRequest& request);
  void on(From from, const KeepRequest& request) { keep(from, request.id, Lasting::for_good); }
  void on(From from, const PlaceRequest& request) { keep(from, request.id, Lasting::this_boot); }
  void on(From from, const DropRequest& request);
  void on(From from, const SnapshotsRequest& request);
  void on(From from, const ListenersRequest& request);
  void on(From from, const DiffRequest& request);
  void on(From from, const CallersRequest& request);
  void on(From from, const ContainerRequest& request);
  void on(From from, const EngineRequest& request);
  void answer_caller();
  void on(From from, const VolumeRequest& request);
  void on(From from, const VolumesRequest& request);
  void on(From from, const DropVolumeRequest& request);

  void finish_start(From from, Starting starting, const Plan& plan);
  void end(From from, const std::string& id, bool keep_files);
  void end_when_empty(Ending ending);
  bool finish_end(const Ending& ending);
  bool finish_freeze(const Freezing& freezing);
  // See snapshot_requests.cc.
  void watch(const std::shared_ptr<Capturing>& capturing, int fd, std::function<void()> then);
  void freeze_for(const std::shared_ptr<Capturing>& capturing);
  bool capture_when_frozen(const std::shared_ptr<Capturing>& capturing);
  void give_up(const std::shared_ptr<Capturing>& capturing, Error why);
  void finish_when_ended(const std::shared_ptr<Capturing>& capturing);
  void finish_capture(const std::shared_ptr<Capturing>& capturing, Result<void> outcome);
  void cancel_capture(const std::string& id);
  void finish_volume(From from, const VolumeRequest& request, const Result<void>& outcome);
  void keep(From from, const std::string& id, Lasting lasting);
  void answer_kept(From from, const std::string& id, Lasting lasting, const Result<void>& outcome);

  template <class Body>
  void answer(From from, const Body& body, std::vector<Fd> descriptors = {}) {
    if (from.peer == kNobody) return;
    Answer answer;
    answer.tag = from.tag;
    answer.body = encode_body(body);
    answer.descriptors = std::move(descriptors);
    events_.answer(from.peer, std::move(answer));
  }
  void answer_error(From from, const Error& error);
  void answer_done(From from, const Result<void>& result);

  SandboxTable& sandboxes_;
  Reactor& reactor_;
  Events events_;
  std::map<std::string, std::shared_ptr<Capturing>> captures_;  // under way, by the id of the sandbox
  std::optional<From> listening_;                               // who wants to hear of sandboxes that speak
  bool watches_callers_ = false;
  std::set<std::string> keeping_;  // snapshots on their way to the disk
};

}  // namespace osb::launcher
