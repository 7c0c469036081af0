#include "launcher/settings.h"

#include <algorithm>

#include "base/fnv.h"
#include "base/strings.h"

namespace osb::launcher {

std::vector<std::string> to_arguments(const Settings& s) {
  std::vector<std::string> out = {"--state-dir=" + s.state_dir,
                                  "--service-uid=" + std::to_string(s.service_uid),
                                  "--service-gid=" + std::to_string(s.service_gid),
                                  "--listener-fd=" + std::to_string(s.listener_fd),
                                  "--server-fd=" + std::to_string(s.server_fd),
                                  "--execd-fd=" + std::to_string(s.execd_fd)};
  if (s.engine_gid != 0) out.push_back("--engine-gid=" + std::to_string(s.engine_gid));
  if (!s.engine_socket.empty()) out.push_back("--engine-socket=" + s.engine_socket);
  if (s.notes_fd >= 0) out.push_back("--notes-fd=" + std::to_string(s.notes_fd));
  if (s.rootless) out.push_back("--rootless=1");
  if (s.engine_only) out.push_back("--engine-only=1");
  if (s.runsc_fd >= 0) {
    out.push_back("--runsc-fd=" + std::to_string(s.runsc_fd));
    out.push_back("--runsc-platform=" + s.runsc_platform);
  }
  if (!s.runtime_dir.empty()) out.push_back("--runtime-dir=" + s.runtime_dir);
  for (const std::string& source : s.sources) out.push_back("--source=" + source);
  for (const std::string& path : s.shared_paths) out.push_back("--shared-path=" + path);
  for (const std::string& word : s.server) out.push_back("--server-argument=" + word);
  for (const std::string& word : s.egress) out.push_back("--egress-argument=" + word);
  if (!s.egress.empty()) {
    out.push_back("--egress-fd=" + std::to_string(s.egress_fd));
    out.push_back("--egress-uid=" + std::to_string(s.egress_uid));
    out.push_back("--egress-gid=" + std::to_string(s.egress_gid));
  }
  return out;
}

Result<Settings> from_arguments(const std::vector<std::string>& arguments) {
  Settings s;
  const std::pair<const char*, int*> descriptors[] = {
      {"--listener-fd", &s.listener_fd}, {"--server-fd", &s.server_fd}, {"--execd-fd", &s.execd_fd},
      {"--runsc-fd", &s.runsc_fd},       {"--egress-fd", &s.egress_fd}, {"--notes-fd", &s.notes_fd}};
  for (const std::string& argument : arguments) {
    size_t equals = argument.find('=');
    std::string name = argument.substr(0, equals);
    std::string value = equals == argument.npos ? "" : argument.substr(equals + 1);
    auto number = [&](auto& into) -> Result<void> {
      auto parsed = parse_number<uint32_t>(value);
      if (!parsed) return fail(Code::invalid_argument, "launcher: " + name + " needs a number");
      into = static_cast<std::remove_reference_t<decltype(into)>>(*parsed);
      return {};
    };
    auto descriptor = std::ranges::find(descriptors, name, &std::pair<const char*, int*>::first);
    if (descriptor != std::end(descriptors))
      TRY(number(*descriptor->second));
    else if (name == "--state-dir")
      s.state_dir = value;
    else if (name == "--service-uid")
      TRY(number(s.service_uid));
    else if (name == "--service-gid")
      TRY(number(s.service_gid));
    else if (name == "--engine-gid")
      TRY(number(s.engine_gid));
    else if (name == "--engine-socket")
      s.engine_socket = value;
    else if (name == "--runsc-platform")
      s.runsc_platform = value;
    else if (name == "--rootless")
      s.rootless = value == "1";
    else if (name == "--engine-only")
      s.engine_only = value == "1";
    else if (name == "--runtime-dir")
      s.runtime_dir = value;
    else if (name == "--source")
      s.sources.push_back(value);
    else if (name == "--shared-path")
      s.shared_paths.push_back(value);
    else if (name == "--server-argument")
      s.server.push_back(value);
    else if (name == "--egress-argument")
      s.egress.push_back(value);
    else if (name == "--egress-uid")
      TRY(number(s.egress_uid));
    else if (name == "--egress-gid")
      TRY(number(s.egress_gid));
    else
      return fail(Code::invalid_argument,
                  "launcher: unknown argument " + argument + "; it is started by opensandbox-server");
  }
  if (s.state_dir.empty() || s.state_dir[0] != '/' || s.server.empty() || s.listener_fd < 0 ||
      s.server_fd < 0 || s.execd_fd < 0 || s.egress.empty() != (s.egress_fd < 0)) {
    return fail(Code::invalid_argument,
                "launcher: started without its settings; start opensandbox-server instead");
  }
  return s;
}

std::string cgroup_name(const std::string& state_dir) {
  Fnv1a fnv;
  fnv.add(state_dir);
  uint64_t hash = fnv.value();
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "opensandbox-";
  for (int shift = 28; shift >= 0; shift -= 4) out.push_back(kDigits[(hash >> shift) & 15]);
  return out;
}

}  // namespace osb::launcher
