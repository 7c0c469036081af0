#pragma once

// What kind of archive a file is. Its bytes are looked at in a worker only.

#include "image/archive_files.h"
#include "image/store.h"
#include "image/worker.h"

namespace osb::image {

struct Inspection {
  enum class Kind {
    root,        // the files of a root, or nothing that looks like an image archive
    image,       // an image archive; `members` are its files
    compressed,  // may be an image archive, but has to be decompressed to tell
  };
  Kind kind = Kind::root;
  Members members;
};

// `file` can be read at any position.
Result<Inspection> inspect(Store& store, int file, const WorkerWatch& watch);

// The decompressed bytes of `input` (a file or a pipe) as a file without a name.
Result<Fd> spool(Store& store, int input, uint64_t max_bytes, const WorkerWatch& watch);

// The part that the worker runs, for tests and for fuzzing: the JSON that inspect() takes apart.
Result<std::string> inspect_bytes(ByteRange range);
Result<Inspection> parse_inspection(std::string_view json);

}  // namespace osb::image
