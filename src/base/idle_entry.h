#pragma once

// What clients give a sandbox that is only to be there. An image without that program is none the worse for
// it: then there is no entry process, and the sandbox lives until it is removed. So it need not be waited
// for, and may start a little later.

#include <string>
#include <vector>

namespace osb {

inline std::vector<std::string> idle_entry() { return {"tail", "-f", "/dev/null"}; }
inline bool is_idle_entry(const std::vector<std::string>& argv) { return argv == idle_entry(); }

}  // namespace osb
