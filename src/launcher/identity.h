#pragma once

// Who a service is: what its state directory says, not how the path to it is spelled.
//
// The file <state>/identity holds a random number, made once, and the name that the service's control groups
// and its directory of sockets have. The same directory seen under another path is the same service; another
// directory under the same path (a container, a private mount) is another one.
//
// The file is also our mark on the directory: without it nothing in there is touched.

#include <string>

#include "base/error.h"

namespace osb::launcher {

struct Identity {
  std::string id;     // 32 hexadecimal digits
  std::string group;  // "opensandbox-" and hexadecimal digits; seen by everybody on the host
};

// One spelling for each directory: absolute, without links, "." and "..", whether it exists yet or not.
Result<std::string> resolve_state_dir(const std::string& given);

// Makes the directory ours, or finds that it is. What may be taken over is a directory that does not exist
// yet (its parent does), an empty one, one with an identity, and one of a version without identities. It has
// to belong to the calling user. Anything else is refused untouched. `given` is how earlier versions would
// have spelled the path: they made names from it, under which sandboxes may still run.
Result<Identity> claim_state_dir(const std::string& path, const std::string& given);

// Code::not_found when there is none.
Result<Identity> read_identity(const std::string& state_dir);

// What others may know of it, on a command line and in a database: tells services apart and opens nothing.
std::string fingerprint(const Identity& identity);

Result<Identity> parse_identity(std::string_view text);
std::string to_text(const Identity& identity);

}  // namespace osb::launcher
