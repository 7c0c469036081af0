#pragma once

// Identifiers of the outside world. Sandbox ids are UUIDs of version 7 (they sort by creation time); ids of
// commands are 32 hexadecimal digits. Randomness comes from getrandom(2).

#include <string>
#include <string_view>

namespace osb {

std::string new_uuid7();
std::string new_uuid4();
std::string new_hex_id();  // 32 lower-case hexadecimal digits
// The canonical hyphenated lower-case form, the only one ever used in paths and cgroup names.
bool is_uuid(std::string_view text);
// What a sandbox may be called that another server has made: one word of a URL, a file's name.
bool is_sandbox_id(std::string_view text);

}  // namespace osb
