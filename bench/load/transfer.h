#pragma once

// Large bodies, timed: event streams that are counted while they arrive, downloads, uploads, and the bare
// loop that an upload is compared with. Nothing is kept, so the client's memory does not grow with what it
// moves.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace load {

// What an event stream of a command held.
struct Counted {
  uint64_t lines = 0;  // stdout events
  uint64_t bytes = 0;  // of their texts, as they stand in the JSON
  bool complete = false;
};

// Counts events without decoding them: enough for output that needs no escapes. Fed with pieces of any size.
class EventCounter {
 public:
  void feed(std::string_view bytes);
  const Counted& counted() const { return counted_; }

 private:
  void event(std::string_view line);
  std::string partial_;
  Counted counted_;
};

// One request on its own connection to 127.0.0.1:port. Microseconds until the whole answer is there; absent,
// with the reason in `problem`, when it is not what was expected.
std::optional<double> stream(int port, const std::string& request, Counted& counted, std::string& problem);
std::optional<double> download(int port, const std::string& path, uint64_t bytes, std::string& problem);
// A multipart upload of `bytes` bytes to `destination`.
std::optional<double> upload(int port, const std::string& path, const std::string& destination,
                             uint64_t bytes, std::string& problem);
// The bare loop: one process receives `bytes` bytes over loopback and writes them to `file`, another sends
// them.
std::optional<double> receive_and_write(const std::string& file, uint64_t bytes, std::string& problem);

// Memory that is surely the machine's own. A virtual machine may give free memory back to its host, in blocks
// of 2 MiB and more; to get it again takes several times as long as to fill it. This takes so much memory,
// writes to it and frees it but for a page in every 512 KiB, so that whoever allocates next finds it and the
// host does not get it. Holds these pages until it is destroyed.
class MemoryStock {
 public:
  ~MemoryStock() { release(); }
  std::optional<double> renew(uint64_t bytes, std::string& problem);  // microseconds
  void release();

 private:
  void* at_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace load
