#pragma once

// Files of the original server in which it keeps what it has changed of its sandboxes: metadata in <id>.json,
// expiries in _expiration/<id>.json. They are in root's home as a rule, where the server cannot go, so root
// reads them when the service starts and every server gets the result as sealed memory. Bounded, and no link
// is followed.

#include "base/fd.h"
#include "docker/original_notes.h"
#include "server/config.h"

namespace osb::cli {

// No descriptor when there is nothing to take over. A directory that is not there is fine; files that make no
// sense are left out, which is logged.
Result<Fd> hand_on_original_files(const server::Config& config);
// Of a directory.
Result<docker::OriginalNotes> read_original_files(const std::string& directory);
// In the server. Nothing when nothing was handed on.
Result<docker::OriginalNotes> inherited_original_notes();

}  // namespace osb::cli
