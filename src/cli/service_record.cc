#include "cli/service_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/strings.h"

namespace osb::cli {

std::string start_of(pid_t pid) {
  auto stat = read_file(fmt::format("/proc/{}/stat", pid));
  if (!stat || stat->rfind(") ") == stat->npos) return "";
  auto fields = split(std::string_view(*stat).substr(stat->rfind(") ") + 2), ' ');
  return fields.size() > 19 && fields[0] != "Z" ? std::string(fields[19]) : "";
}

std::optional<ServiceRecord> read_record(const std::string& path) {
  auto text = read_file(path, 4096);
  if (!text) return std::nullopt;
  auto words = split(trim(*text), ' ');
  if (words.size() != 2 && words.size() != 4) return std::nullopt;
  auto pid = parse_number<pid_t>(words[0]);
  auto port = words.size() == 4 ? parse_number<uint16_t>(words[2]) : uint16_t{0};
  if (!pid || *pid <= 0 || !port) return std::nullopt;
  ServiceRecord record{*pid, std::string(words[1]), *port,
                       words.size() == 4 ? std::string(words[3]) : std::string()};
  if (record.started.empty() || !is_alive(record)) return std::nullopt;
  return record;
}

Result<void> write_own_record(const std::string& path, uint16_t port, const std::string& key) {
  pid_t self = ::getpid();
  std::string text = fmt::format("{} {}", self, start_of(self));
  if (port != 0) text += fmt::format(" {} {}", port, key);
  std::string staged = fmt::format("{}.{}", path, self);
  ::unlink(staged.c_str());
  TRY(write_file(staged, text + "\n", O_CREAT | O_EXCL, 0600));
  if (::rename(staged.c_str(), path.c_str()) == 0) return {};
  int why = errno;
  ::unlink(staged.c_str());
  return fail_errno("rename", why);
}

Result<void> end_service(const ServiceRecord& record, std::chrono::seconds patience) {
  ::kill(record.pid, SIGTERM);
  auto until = std::chrono::steady_clock::now() + patience;
  while (is_alive(record)) {
    if (std::chrono::steady_clock::now() > until)
      return fail(Code::timeout, fmt::format("the server does not end; kill {} by hand", record.pid));
    ::usleep(20'000);
  }
  return {};
}

Result<std::optional<Fd>> try_lock(const std::string& path) {
  Fd file = TRY(open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return std::optional(std::move(file));
  if (errno == EWOULDBLOCK) return std::optional<Fd>();
  return fail_errno("lock " + path);
}

}  // namespace osb::cli
