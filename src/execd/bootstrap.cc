#include "execd/bootstrap.h"

#include "base/bootstrap_variables.h"
#include "execd/command_request.h"

namespace osb::execd {
namespace {

// A name without a slash would be looked up in PATH. A script that is not there ends some shells without a
// word, and others not at all.
constexpr char kSource[] = R"(case $EXECD_BOOTSTRAP_PRE_SCRIPT in
*/*) ;;
*) EXECD_BOOTSTRAP_PRE_SCRIPT=./$EXECD_BOOTSTRAP_PRE_SCRIPT ;;
esac
if [ ! -r "$EXECD_BOOTSTRAP_PRE_SCRIPT" ]; then
  echo "EXECD_BOOTSTRAP_PRE_SCRIPT: $EXECD_BOOTSTRAP_PRE_SCRIPT cannot be read; put it into the image, or name another" >&2
  exit 127
fi
. "$EXECD_BOOTSTRAP_PRE_SCRIPT"
exec "$@")";

std::string line_of(const std::vector<std::string>& argv, const Environment& env) {
  std::string line = env.get(kEntryLineVariable);
  if (!line.empty() || argv.size() < 2 || argv[0] != "-c") return line;
  for (size_t i = 1; i < argv.size(); ++i) line.append(i == 1 ? "" : " ").append(argv[i]);
  return line;
}

}  // namespace

Result<std::vector<std::string>> bootstrap(std::vector<std::string> argv, const Environment& env) {
  std::string line = line_of(argv, env);
  bool sources = !env.get(kPreScriptVariable).empty();
  if (line.empty() && !sources) return argv;
  std::string shell = env.get(kEntryShellVariable);
  if (shell.empty()) shell = find_shell(env).file;
  if (shell.empty()) {
    return fail(Code::not_found, std::string(sources ? kPreScriptVariable : kEntryLineVariable) +
                                     " needs a shell, and the image has neither bash nor sh; name one with " +
                                     kEntryShellVariable + ", or leave the variable out");
  }
  if (!line.empty()) argv = {shell, "-c", std::move(line)};
  if (sources) argv.insert(argv.begin(), {shell, "-c", kSource, shell});
  return argv;
}

}  // namespace osb::execd
