#include "image/accounts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <optional>

#include "base/fd.h"
#include "base/strings.h"

namespace osb::image {
namespace {

constexpr size_t kMaxFile = 4 << 20;

struct Account {
  std::string name, home;
  uint32_t uid = 0, gid = 0;
};

// The first line whose name or number is `wanted`. Broken lines are skipped.
std::optional<Account> find_account(std::string_view passwd, std::string_view wanted) {
  auto number = parse_number<uint32_t>(wanted);
  for (std::string_view line : split(passwd, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() < 6) continue;
    auto uid = parse_number<uint32_t>(fields[2]), gid = parse_number<uint32_t>(fields[3]);
    if (!uid || !gid || (fields[0] != wanted && number != uid)) continue;
    return Account{std::string(fields[0]), std::string(fields[5]), *uid, *gid};
  }
  return std::nullopt;
}

std::optional<uint32_t> find_group(std::string_view group, std::string_view wanted) {
  for (std::string_view line : split(group, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() >= 3 && fields[0] == wanted) return parse_number<uint32_t>(fields[2]);
  }
  return parse_number<uint32_t>(wanted);
}

bool is_opaque(int layer, const std::string& path) {
  auto dir = open_beneath(layer, path, O_RDONLY | O_DIRECTORY);
  char value = 0;
  return dir && ::fgetxattr(dir->get(), "trusted.overlay.opaque", &value, 1) == 1 && value == 'y';
}

constexpr uint32_t kLastId = 0xffff;

}  // namespace

Result<void> resolve_user(ImageConfig& config, std::string_view passwd, std::string_view group) {
  std::string_view text = config.user;
  size_t colon = text.find(':');
  std::string_view user = text.substr(0, colon),
                   wanted_group = colon == text.npos ? "" : text.substr(colon + 1);
  auto account = find_account(passwd, user.empty() ? "0" : user);
  auto uid = account ? account->uid : parse_number<uint32_t>(user.empty() ? "0" : user);
  if (!uid)
    return fail(Code::invalid_argument,
                "the image's user " + std::string(user) + " is not in its /etc/passwd");
  auto gid =
      wanted_group.empty() ? std::optional(account ? account->gid : 0) : find_group(group, wanted_group);
  if (!gid) {
    return fail(Code::invalid_argument,
                "the image's group " + std::string(wanted_group) + " is not in its /etc/group");
  }
  if (*uid > kLastId || *gid > kLastId) {
    return fail(Code::invalid_argument,
                "the image's user " + config.user + " is outside the 65536 ids of a sandbox");
  }
  config.uid = *uid;
  config.gid = *gid;
  config.user_name = account ? account->name : "";
  config.home = account ? account->home : "";
  return {};
}

Result<std::string> read_from_layers(const std::vector<std::string>& layers, const std::string& path) {
  std::string parent = path.substr(0, path.rfind('/'));
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    Fd root = TRY(open_at(AT_FDCWD, *layer, O_RDONLY | O_DIRECTORY));
    auto file = open_beneath(root.get(), path, O_RDONLY | O_NONBLOCK);
    struct stat info{};
    if (file && ::fstat(file->get(), &info) == 0) {
      if (!S_ISREG(info.st_mode)) return "";
      return in_context(path, read_all(file->get(), kMaxFile));
    }
    // A whiteout cannot be opened (ENXIO), a link is not followed (ELOOP): either way nothing below counts.
    if (!file && file.error().code != Code::not_found) return "";
    if (is_opaque(root.get(), parent)) return "";
  }
  return "";
}

}  // namespace osb::image
