#pragma once

// Volumes: what sandboxes are given from outside, before one is started with it, and what there is of them.

#include <string>
#include <vector>

#include "launcher/messages/body.h"
#include "launcher/plan.h"

namespace osb::launcher {

inline constexpr size_t kMostVolumeName = 253;
inline constexpr size_t kVolumesPage = 256;

struct VolumeAnswer {
  static constexpr std::string_view kName = "the answer to volume";
  static constexpr size_t kDescriptors = 0;
  bool made = false;  // a named volume that was not there before

  void write(ByteWriter& out) const { out.flag(made); }
  void read(ByteReader& in) { made = in.flag(); }
};

// Whether a step of a plan that shows a volume would find it; what is missing is made if that is wished.
// Code::not_found: it is not there. Code::permission_denied: no sandbox may have it so.
// Code::invalid_argument: a link that leads out, or a file, is on the way.
struct VolumeRequest {
  static constexpr std::string_view kName = "volume";
  static constexpr Verb kVerb = Verb::volume;
  using Answer = VolumeAnswer;
  Step step;
  bool create = false;
  // Of a named volume that is made: it goes with the last sandbox that uses it; how much it holds, or -1.
  bool ephemeral = false;
  int64_t size_bytes = -1;

  void write(ByteWriter& out) const {
    write_step(step, out);
    out.flag(create);
    out.flag(ephemeral);
    out.number(size_bytes);
  }
  void read(ByteReader& in) {
    step = read_step(in);
    create = in.flag();
    ephemeral = in.flag();
    size_bytes = in.number<int64_t>();
  }
};

struct VolumesAnswer {
  static constexpr std::string_view kName = "the answer to volumes";
  static constexpr size_t kDescriptors = 0;
  struct Volume {
    std::string name;
    int64_t created = 0;  // microseconds since 1970
    bool ephemeral = false;
    uint32_t users = 0;
    int64_t size_bytes = -1;  // none
  };
  std::vector<Volume> volumes;  // in order; fewer than kVolumesPage: these are the last

  void write(ByteWriter& out) const {
    out.number(static_cast<uint32_t>(volumes.size()));
    for (const Volume& one : volumes) {
      out.string(one.name);
      out.number(one.created);
      out.flag(one.ephemeral);
      out.number(one.users);
      out.number(one.size_bytes);
    }
  }
  void read(ByteReader& in) {
    auto count = in.number<uint32_t>();
    if (count > kVolumesPage) return in.fail();
    for (uint32_t i = 0; i < count && !in.failed(); ++i) {
      Volume& one = volumes.emplace_back();
      one.name = in.string(kMostVolumeName);
      one.created = in.number<int64_t>();
      one.ephemeral = in.flag();
      one.users = in.number<uint32_t>();
      one.size_bytes = in.number<int64_t>();
    }
  }
};

// The named volumes of an owner.
struct VolumesRequest {
  static constexpr std::string_view kName = "volumes";
  static constexpr Verb kVerb = Verb::volumes;
  using Answer = VolumesAnswer;
  std::string owner;
  std::string after;  // the last name of the page before, or ""

  void write(ByteWriter& out) const {
    out.string(owner);
    out.string(after);
  }
  void read(ByteReader& in) {
    owner = in.string(kMostVolumeName);
    after = in.string(kMostVolumeName);
  }
};

// Code::not_found, Code::wrong_state while a sandbox uses it.
struct DropVolumeRequest {
  static constexpr std::string_view kName = "drop-volume";
  static constexpr Verb kVerb = Verb::drop_volume;
  using Answer = Done;
  std::string owner, name;

  void write(ByteWriter& out) const {
    out.string(owner);
    out.string(name);
  }
  void read(ByteReader& in) {
    owner = in.string(kMostVolumeName);
    name = in.string(kMostVolumeName);
  }
};

}  // namespace osb::launcher
