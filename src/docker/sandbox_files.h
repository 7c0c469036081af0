#pragma once

// What the server keeps of its containers on the host, below a directory of its own:
//
//   execd-<digest>          what every container runs
//   <handle>/boot/execd     the same file once more, and
//   <handle>/boot/hub       the socket through which it gets its listeners: shown to the container, read-only
//   <handle>/api, control, ports   those listeners, which nothing inside can name
//   <handle>/boot/secret    instead of the hub, for a container that is reached by its network: what opens
//                           its execd, until execd has read it
//   <handle>/secret         the same for the server; instead of the listeners
//   <handle>/token          what opens the egress of one on another host; nothing in the sandbox ever has it
//   boot-volume             which volume of an engine on another host has execd in it, when it is all there
//   snapshot-<id>           the record of the sandbox that a snapshot was made of
//   <handle>/record         see Runtime::keep_record(); an engine's labels cannot be changed
//
// Everything belongs to the server, so that it can remove it without help. Belongs to the server's loop; the
// files are small and few.

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace osb::docker {

// Where a container sees <handle>/boot.
inline constexpr char kBootInside[] = "/opt/opensandbox/boot";
// Whether something that is mounted at this path could stand in the place of what is there: at it, below or
// around it.
bool is_near_boot(std::string_view path);

struct Listeners {
  Fd hub, api, control, ports;
};

struct Secrets {
  std::string secret;      // what opens execd
  std::string token = {};  // what opens its egress; Secret::kept
};

class SandboxFiles {
 public:
  static Result<SandboxFiles> open(const std::string& directory, std::string_view execd);

  // Code::already_exists. On failure nothing is left.
  Result<Listeners> make(const std::string& handle, std::string_view record) const;
  // The same for a container that is reached by its network or by its engine.
  enum class Secret { shown, kept };  // to the container by its boot directory, or to nobody
  Result<Secrets> make_with_secret(const std::string& handle, std::string_view record, Secret secret) const;
  Result<std::string> read_secret(const std::string& handle) const;  // Code::not_found: it has listeners
  Result<std::string> read_token(const std::string& handle) const;   // Code::not_found: no secret, or shown
  // Of a container that another server has made: a record and nothing else.
  Result<void> take_over(const std::string& handle, std::string_view record) const;
  bool is_taken_over(const std::string& handle) const;
  // execd runs: nobody else is to find the hub or the secret.
  void close_boot(const std::string& handle) const;
  Result<void> remove(const std::string& handle) const;
  Result<std::vector<std::string>> list() const;

  Result<void> write_record(const std::string& handle, std::string_view record) const;
  Result<std::string> read_record(const std::string& handle) const;  // Code::not_found

  // Of snapshots, by their ids.
  Result<void> write_snapshot_record(const std::string& snapshot, std::string_view record) const;
  Result<std::string> read_snapshot_record(const std::string& snapshot) const;  // Code::not_found
  Result<void> remove_snapshot_record(const std::string& snapshot) const;

  // The names of volumes for this execd begin so.
  std::string boot_volume_prefix() const;
  Result<void> write_boot_volume(std::string_view name) const;
  Result<std::string> read_boot_volume() const;  // Code::not_found
  // Until another is written; nothing if it is another already.
  void distrust_boot_volume(std::string_view name) const;

  // The id of the engine that has the sandboxes.
  Result<void> write_engine(std::string_view id) const;
  Result<std::string> read_engine() const;  // Code::not_found
  Result<bool> has_snapshots() const;

  // What has to be on the disk (durable.h) before an engine on another host is asked for something that
  // outlives this one: of a sandbox, or the note about the volume.
  Result<std::vector<Fd>> vital_files(const std::string& handle) const;
  Result<std::vector<Fd>> vital_files() const;

  // For connect(): short, however long the directory's name is.
  std::string socket(const std::string& handle, std::string_view name) const;
  std::string boot_on_host(const std::string& handle) const;
  std::string execd_on_host() const { return directory_ + "/" + execd_; }

 private:
  SandboxFiles(std::string directory, Fd fd, std::string execd)
      : directory_(std::move(directory)), fd_(std::move(fd)), execd_(std::move(execd)) {}
  Result<void> begin(const std::string& handle, std::string_view record) const;
  Result<std::string> read_secret_at(const std::string& handle, std::string_view name) const;
  Result<Listeners> fill(const std::string& handle, std::string_view record) const;
  Result<Secrets> fill_secret(const std::string& handle, std::string_view record, Secret shown) const;

  std::string directory_;
  Fd fd_;
  std::string execd_;  // its name
};

}  // namespace osb::docker
