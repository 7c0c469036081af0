#pragma once

// A file that is being uploaded: written beside its destination and moved into place when it is complete, so
// that nobody ever sees half of it. A destination that exists keeps its owner and mode; a link is followed.
// Where the detour is not possible (a device, a directory without write permission, a file with several
// names), bytes go straight to the destination.
//
// Every function blocks and acts with the file-system identity of the calling thread. Thread-compatible.

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "execd/file_info.h"

namespace osb::execd {

class IncomingFile {
 public:
  // `path` is absolute and clean. Missing parent directories are made.
  static Result<IncomingFile> create(const std::string& path);
  IncomingFile(IncomingFile&&) = default;
  IncomingFile& operator=(IncomingFile&&) = delete;
  ~IncomingFile();  // removes what was not committed

  Result<void> write(std::string_view bytes);
  Result<void> commit(const Permission& permission);

 private:
  IncomingFile() = default;
  static Result<IncomingFile> open_in_place(const std::string& path);
  Result<void> put_into_place(const Permission& permission);
  Result<void> copy_into_place();

  std::string destination_;
  // Owns the name of the temporary file.
  struct Name : std::string {
    using std::string::string;
    Name(Name&& other) noexcept : std::string(std::exchange(static_cast<std::string&>(other), {})) {}
    Name() = default;
  } temporary_;
  Fd fd_;
  std::optional<struct stat> existing_;
};

}  // namespace osb::execd
