#include "execd/options.h"

#include <signal.h>

#include "base/strings.h"

namespace osb::execd {

const char kUsage[] =
    "usage: execd [flags] [ignored...]\n"
    "\n"
    "Runs commands, sessions and file operations for clients of this sandbox.\n"
    "\n"
    "  --port N              TCP port on all addresses (44772)\n"
    "  --access-token T      required in X-EXECD-ACCESS-TOKEN of every request ($EXECD_ACCESS_TOKEN)\n"
    "  --jupyter-host URL    notebook server for code execution ($JUPYTER_HOST)\n"
    "  --jupyter-token T     its token ($JUPYTER_TOKEN)\n"
    "  --log-level N         0 to 2 fatal, 3 error, 4 warning, 5 and 6 information, 7 debug (6)\n"
    "  --native              PID 1 of a native sandbox; listeners are descriptors 3 (API) and 4 (control)\n"
    "  --container PATH      PID 1 of a container; the listeners come through the socket PATH\n"
    "  --connections N       PID 1 under another kernel; connections come as descriptors through this one\n"
    "  --secret PATH         PID 1 of a container with a kernel of its own; who has what is in PATH may use "
    "--port;\n"
    "                        -: it is read from standard input, and the port is on loopback\n"
    "  --join                standard input and output are a connection to --port on loopback\n"
    "  --open-port N         with --container: TCP port on all addresses for everybody, besides\n"
    "  --stop-signal N       ends the entry process when it comes from outside, as SIGTERM, SIGINT and "
    "SIGQUIT do\n"
    "  --shown PATH          a directory of the host that the container is to see; it is told which one it "
    "is\n"
    "  --part PATH           only makes this directory and tells which one it is\n"
    "  --sysinfo-requests N  descriptor on which sysinfo(2) of this sandbox is asked for\n"
    "  --work-group N        descriptor of the control group for what execd starts\n"
    "  --work-nice N         nice value of what execd starts\n"
    "  --work-open-files N   how many files a process that execd starts may have open\n"
    "  --version, --help\n"
    "\n"
    "Accepted and without effect: --graceful-shutdown-timeout, --jupyter-idle-poll-interval.\n"
    "Other variables: EXECD_ENVS (file with variables for every command), EXECD_LOG_FILE, TMPDIR.\n";

Result<Options> parse_options(const std::vector<std::string>& words, const Environment& env) {
  Options options;
  options.access_token = env.get("EXECD_ACCESS_TOKEN");
  options.jupyter_host = env.get("JUPYTER_HOST");
  options.jupyter_token = env.get("JUPYTER_TOKEN");
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word.size() < 2 || word[0] != '-' || word == "--") break;
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    size_t equals = word.find('=');
    std::string_view name = word.substr(0, equals);
    if (name == "native" || name == "version" || name == "join" || name == "help" || name == "h") {
      (name == "native"    ? options.native
       : name == "version" ? options.version
       : name == "join"    ? options.join
                           : options.help) = true;
      continue;
    }
    std::string value;
    if (equals != word.npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      return fail(Code::invalid_argument, "flag " + std::string(name) + " needs a value");
    }
    if (name == "port") {
      auto port = parse_number<uint16_t>(value);
      if (!port || *port == 0) return fail(Code::invalid_argument, "'" + value + "' is no port");
      options.port = *port;
    } else if (name == "log-level") {
      auto level = parse_number<int>(value);
      if (!level) return fail(Code::invalid_argument, "'" + value + "' is no log level");
      options.log_level = *level;
    } else if (name == "container") {
      if (!value.starts_with('/')) return fail(Code::invalid_argument, "--container needs an absolute path");
      options.container = value;
      options.native = true;
    } else if (name == "secret") {
      if (value != "-" && !value.starts_with('/'))
        return fail(Code::invalid_argument, "--secret needs an absolute path");
      options.secret = value;
      options.native = true;
    } else if (name == "open-port") {
      auto port = parse_number<uint16_t>(value);
      if (!port || *port == 0) return fail(Code::invalid_argument, "'" + value + "' is no port");
      options.open_port = *port;
    } else if (name == "stop-signal") {
      auto number = parse_number<int>(value);
      bool usable = number && *number > 0 && *number <= 64 && *number != SIGKILL && *number != SIGSTOP &&
                    *number != SIGCHLD;
      if (!usable) return fail(Code::invalid_argument, "'" + value + "' is no signal that can be heard");
      options.stop_signal = *number;
    } else if (name == "connections") {
      auto fd = parse_number<int>(value);
      if (!fd || *fd < 0) return fail(Code::invalid_argument, "'" + value + "' is no descriptor");
      options.connections = *fd;
      options.native = true;
    } else if (name == "shown") {
      if (!value.starts_with('/')) return fail(Code::invalid_argument, "--shown needs an absolute path");
      options.shown.emplace_back(value);
    } else if (name == "part") {
      if (!value.starts_with('/')) return fail(Code::invalid_argument, "--part needs an absolute path");
      options.parts.emplace_back(value);
    } else if (name == "sysinfo-requests") {
      auto fd = parse_number<int>(value);
      if (!fd || *fd < 3) return fail(Code::invalid_argument, "'" + value + "' is no descriptor");
      options.sysinfo_requests = *fd;
    } else if (name == "work-group") {
      auto fd = parse_number<int>(value);
      if (!fd || *fd < 3) return fail(Code::invalid_argument, "'" + value + "' is no descriptor");
      options.work_group = *fd;
    } else if (name == "work-nice") {
      auto nice = parse_number<int>(value);
      if (!nice || *nice < -20 || *nice > 19)
        return fail(Code::invalid_argument, "'" + value + "' is no nice value");
      options.work_nice = nice;
    } else if (name == "work-open-files") {
      auto most = parse_number<uint64_t>(value);
      if (!most || *most == 0) return fail(Code::invalid_argument, "'" + value + "' is no number of files");
      options.work_open_files = most;
    } else if (name == "access-token") {
      options.access_token = value;
    } else if (name == "jupyter-host") {
      options.jupyter_host = value;
    } else if (name == "jupyter-token") {
      options.jupyter_token = value;
    } else if (name != "graceful-shutdown-timeout" && name != "jupyter-idle-poll-interval") {
      return fail(Code::invalid_argument, "unknown flag " + std::string(name));
    }
  }
  if (!options.jupyter_host.empty() && !options.jupyter_host.starts_with("http://") &&
      !options.jupyter_host.starts_with("https://")) {
    return fail(Code::invalid_argument,
                "the notebook server '" + options.jupyter_host + "' must be an http or https URL");
  }
  return options;
}

}  // namespace osb::execd
