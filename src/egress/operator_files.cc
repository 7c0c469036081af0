#include "egress/operator_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/strings.h"
#include "egress/sidecar_settings.h"

namespace osb::egress {
namespace {

constexpr size_t kMostBytes = 4 * kMostPolicyBytes;

Result<void> write_and_sync(const std::string& path, std::string_view text) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid()) return fail_errno("open the policy file");
  TRY(write_all(file.get(), text));
  if (::fsync(file.get()) < 0) return fail_errno("write the policy file");
  return {};
}

}  // namespace

Result<Policy> initial_policy(const std::string& path, Policy given) {
  if (path.empty()) return given;
  auto text = read_file(path, kMostBytes);
  if (!text && text.error().sys_errno == ENOENT) return given;
  if (!text) return std::unexpected(std::move(text.error()));
  auto policy = trim(*text).empty() ? fail(Code::corrupt, "it is empty") : parse_policy(*text);
  if (policy) return policy;
  log::warn("the policy file is not used; the policy of the environment counts",
            {{"error", policy.error().message}});
  return given;
}

Result<void> keep_policy(const std::string& path, const Policy& policy) {
  std::string text = to_file_text(policy), unfinished = path + ".new";
  TRY(write_and_sync(unfinished, text));
  if (::rename(unfinished.c_str(), path.c_str()) == 0) return {};
  int error = errno;
  ::unlink(unfinished.c_str());
  // A file that is mounted into the container cannot be replaced, only written.
  if (error != EBUSY && error != EXDEV) return fail_errno("replace the policy file", error);
  return write_and_sync(path, text);
}

AlwaysFiles::Version AlwaysFiles::version_of(const File& file) const {
  struct stat found{};
  if (::stat((directory_ + "/" + file.name).c_str(), &found) < 0) return {};
  return {found.st_mtim, found.st_size, found.st_ino};
}

Result<void> AlwaysFiles::read(Overlay& overlay) {
  std::vector<Rule> lists[2];
  size_t i = 0;
  for (File* file : {&deny_, &allow_}) {
    // Before it is read: what is written meanwhile is read again.
    file->version = version_of(*file);
    auto text = read_file(directory_ + "/" + file->name, kMostBytes);
    bool missing = !text && text.error().sys_errno == ENOENT;
    if (!text && !missing) return std::unexpected(std::move(text.error()));
    auto rules = missing ? std::vector<Rule>() : parse_always(*text, file->action);
    if (!rules) return fail(rules.error().code, std::string(file->name) + ": " + rules.error().message);
    lists[i++] = std::move(*rules);
  }
  overlay.deny = std::move(lists[0]);
  overlay.allow = std::move(lists[1]);
  return {};
}

Result<void> AlwaysFiles::check_skipped() const {
  constexpr char kName[] = "log_skip.always";
  auto text = read_file(directory_ + "/" + kName, kMostBytes);
  if (!text && text.error().sys_errno == ENOENT) return {};
  if (!text) return std::unexpected(std::move(text.error()));
  auto rules = parse_always(*text, "allow");
  if (!rules) return fail(rules.error().code, std::string(kName) + ": " + rules.error().message);
  for (const Rule& rule : *rules) {
    if (rule.target.kind == EgressTarget::Kind::prefix)
      return fail(Code::invalid_argument, std::string(kName) + ": only names can be skipped");
  }
  return {};
}

bool AlwaysFiles::changed() const {
  return !(version_of(deny_) == deny_.version && version_of(allow_) == allow_.version);
}

}  // namespace osb::egress
