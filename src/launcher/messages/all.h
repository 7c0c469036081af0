#pragma once

// Every verb there is. A request that is not in this list is not understood, and not fuzzed.

#include "launcher/messages/container.h"
#include "launcher/messages/ending.h"
#include "launcher/messages/finding.h"
#include "launcher/messages/looking.h"
#include "launcher/messages/pausing.h"
#include "launcher/messages/snapshots.h"
#include "launcher/messages/start.h"
#include "launcher/messages/volumes.h"

namespace osb::launcher {

// Calls `use` with a value of the request's type (it is empty) for the verb.
template <class Use>
auto with_request_of(Verb verb, Use use) {
  switch (verb) {
    case Verb::start:
      return use(StartRequest{});
    case Verb::stop:
      return use(StopRequest{});
    case Verb::destroy:
      return use(DestroyRequest{});
    case Verb::list:
      return use(ListRequest{});
    case Verb::adopt:
      return use(AdoptRequest{});
    case Verb::sockets:
      return use(SocketsRequest{});
    case Verb::ooms:
      return use(OomsRequest{});
    case Verb::freeze:
      return use(FreezeRequest{});
    case Verb::thaw:
      return use(ThawRequest{});
    case Verb::recall:
      return use(RecallRequest{});
    case Verb::record:
      return use(RecordRequest{});
    case Verb::health:
      return use(HealthRequest{});
    case Verb::images:
      return use(ImagesRequest{});
    case Verb::capture:
      return use(CaptureRequest{});
    case Verb::keep:
      return use(KeepRequest{});
    case Verb::place:
      return use(PlaceRequest{});
    case Verb::drop:
      return use(DropRequest{});
    case Verb::snapshots:
      return use(SnapshotsRequest{});
    case Verb::listeners:
      return use(ListenersRequest{});
    case Verb::diff:
      return use(DiffRequest{});
    case Verb::volume:
      return use(VolumeRequest{});
    case Verb::volumes:
      return use(VolumesRequest{});
    case Verb::drop_volume:
      return use(DropVolumeRequest{});
    case Verb::callers:
      return use(CallersRequest{});
    case Verb::container:
      return use(ContainerRequest{});
    case Verb::engine:
      return use(EngineRequest{});
  }
  __builtin_unreachable();  // decode_request lets no other verb through
}

}  // namespace osb::launcher
