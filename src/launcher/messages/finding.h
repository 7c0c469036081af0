#pragma once

// Sandboxes that were there before: a server that starts learns from these what runs.

#include <string>
#include <vector>

#include "launcher/messages/body.h"
#include "launcher/started.h"

namespace osb::launcher {

// Ids in one answer to list.
inline constexpr size_t kListPage = 512;

struct ListAnswer {
  static constexpr std::string_view kName = "the answer to list";
  static constexpr size_t kDescriptors = 0;
  std::vector<std::string> ids;  // in order; fewer than kListPage: these are the last

  void write(ByteWriter& out) const {
    out.number(static_cast<uint32_t>(ids.size()));
    for (const std::string& id : ids) out.string(id);
  }
  void read(ByteReader& in) {
    auto count = in.number<uint32_t>();
    if (count > kListPage) return in.fail();
    for (uint32_t i = 0; i < count && !in.failed(); ++i) ids.push_back(in.string(kMaxIdBytes));
  }
};

struct ListRequest {
  static constexpr std::string_view kName = "list";
  static constexpr Verb kVerb = Verb::list;
  using Answer = ListAnswer;
  std::string after;  // the last id of the page before, or ""; any text is behind or before the ids

  void write(ByteWriter& out) const { out.rest(after); }
  void read(ByteReader& in) { after = in.rest(); }
};

// Descriptor: a pidfd of the first process.
struct AdoptAnswer {
  static constexpr std::string_view kName = "the answer to adopt";
  static constexpr size_t kDescriptors = 1;
  bool frozen = false;  // or about to be

  void write(ByteWriter& out) const { out.flag(frozen); }
  void read(ByteReader& in) { frozen = in.flag(); }
};

// Code::not_found only when that process is gone; any other failure says nothing about the sandbox.
struct AdoptRequest {
  static constexpr std::string_view kName = "adopt";
  static constexpr Verb kVerb = Verb::adopt;
  using Answer = AdoptAnswer;
  std::string id;
  Started first_process;  // as it was when the sandbox was made

  void write(ByteWriter& out) const {
    out.string(id);
    out.number(first_process.pid);
    out.number(first_process.start_ticks);
  }
  void read(ByteReader& in) {
    id = in.string(kMaxIdBytes);
    first_process.pid = in.number<int64_t>();
    first_process.start_ticks = in.number<uint64_t>();
  }
};

struct RecallAnswer {
  static constexpr std::string_view kName = "the answer to recall";
  static constexpr size_t kDescriptors = 0;
  std::string record;     // see records.h; "" when there is none
  Started first_process;  // zeros when there is none

  void write(ByteWriter& out) const {
    out.string(record);
    out.number(first_process.pid);
    out.number(first_process.start_ticks);
  }
  void read(ByteReader& in) {
    record = in.string();
    first_process.pid = in.number<int64_t>();
    first_process.start_ticks = in.number<uint64_t>();
  }
};

// What is known about a sandbox that nobody else knows about.
struct RecallRequest : IdBody {
  static constexpr std::string_view kName = "recall";
  static constexpr Verb kVerb = Verb::recall;
  using Answer = RecallAnswer;
};

// Keeps a record beside the sandbox, in place of the one that is there.
struct RecordRequest {
  static constexpr std::string_view kName = "record";
  static constexpr Verb kVerb = Verb::record;
  using Answer = Done;
  std::string id;
  std::string record;

  void write(ByteWriter& out) const {
    out.string(id);
    out.string(record);
  }
  void read(ByteReader& in) {
    id = in.string(kMaxIdBytes);
    record = in.string();
  }
};

}  // namespace osb::launcher
