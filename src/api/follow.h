#pragma once

// The wire of waiting: the query of a long poll, and the frames of the event stream (text/event-stream).

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/error.h"
#include "sandbox/sandbox.h"

namespace osb::api {

struct WaitQuery {
  std::vector<sandbox::State> states;  // any of these
  std::chrono::seconds timeout;

  bool wants(sandbox::State state) const;
};
// `state`, which may be repeated or have commas, and `timeout` in seconds.
ApiResult<WaitQuery> decode_wait_query(std::string_view raw_query);

// The number of the last event that a client has: from the field that browsers send, or from `lastEventId`.
ApiResult<std::optional<int64_t>> decode_last_event_id(std::string_view field, std::string_view raw_query);

struct StreamedEvent {
  int64_t number = 0;
  std::string_view sandbox_id;
  const sandbox::Event& event;
};
void append_event(std::string& out, const StreamedEvent& event);
// Some events were forgotten, or are another server's: the client has to look anew at what there is.
void append_reset(std::string& out, int64_t number);

}  // namespace osb::api
