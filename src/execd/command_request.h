#pragma once

// The body of POST /command, checked and turned into what is to be executed.

#include <boost/json/value.hpp>

#include "execd/command.h"
#include "execd/reply.h"

namespace osb::execd {

std::expected<CommandSpec, ApiError> decode_command(const boost::json::value& body, const Core& core);

// The identity of a user as the system knows it: primary group unless `gid` says otherwise, supplementary
// groups. An id without a passwd entry gets the group of the same number, never group 0.
Credentials credentials_of(uid_t uid, std::optional<gid_t> gid);

// A working directory as a request names it: expanded with `env`, relative to `base`, existing.
std::expected<std::string, ApiError> resolve_cwd(std::string_view cwd, const Environment& env,
                                                 std::string_view base);

// The file of bash, else of sh, in the PATH of `env`.
struct ShellProgram {
  std::string name, file;  // file is "" when neither exists
};
ShellProgram find_shell(const Environment& env);

}  // namespace osb::execd
