#include "execd/file_info.h"

#include <unistd.h>

#include "base/clock.h"
#include "json/escape.h"

namespace osb::execd {
namespace {

std::string_view type_word(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "directory";
  if (S_ISLNK(mode)) return "symlink";
  return "other";  // clients know no fifth word
}

std::string time_text(const timespec& time) {
  using namespace std::chrono;
  std::string text = format_time(WallTime(seconds(time.tv_sec) + microseconds(time.tv_nsec / 1000)), 6);
  // The clock of this project ends at microseconds; files are stamped in nanoseconds.
  char last[4] = {};
  int rest = static_cast<int>(time.tv_nsec % 1000);
  last[0] = static_cast<char>('0' + rest / 100);
  last[1] = static_cast<char>('0' + rest / 10 % 10);
  last[2] = static_cast<char>('0' + rest % 10);
  return text.insert(text.size() - 1, last, 3);
}

}  // namespace

void append_file_info(std::string& out, const std::string& path, const struct stat& info,
                      const Users& users) {
  out += "{\"path\":";
  json::append_string(out, path);
  out.append(",\"type\":\"")
      .append(type_word(info.st_mode))
      .append("\",\"size\":")
      .append(std::to_string(info.st_size));
  out.append(",\"modified_at\":\"").append(time_text(info.st_mtim));
  out.append("\",\"created_at\":\"").append(time_text(info.st_ctim)).append("\",\"owner\":");
  json::append_string(out, users.user_name(info.st_uid));
  out += ",\"group\":";
  json::append_string(out, users.group_name(info.st_gid));
  out.append(",\"mode\":").append(std::to_string(digits_from_mode(info.st_mode))).append("}");
}

Permission decode_permission(const json::Field& field) {
  return {field["owner"].string().value_or(""), field["group"].string().value_or(""),
          field["mode"].integer().value_or(0)};
}

std::optional<mode_t> mode_from_digits(int64_t digits) {
  if (digits < 0) return std::nullopt;
  mode_t mode = 0;
  for (int shift = 0; digits > 0; shift += 3, digits /= 10) {
    int64_t digit = digits % 10;
    if (digit > 7) return std::nullopt;
    if (shift < 9) mode |= static_cast<mode_t>(digit) << shift;
  }
  return mode;
}

int64_t digits_from_mode(mode_t mode) { return (mode >> 6 & 7) * 100 + (mode >> 3 & 7) * 10 + (mode & 7); }

Result<void> apply_permission(const std::string& path, const Permission& permission) {
  if (!permission.owner.empty() || !permission.group.empty()) {
    Users users = Users::load();
    uid_t uid = static_cast<uid_t>(-1);
    gid_t gid = static_cast<gid_t>(-1);
    if (!permission.owner.empty()) {
      auto found = resolve_user(users, permission.owner);
      if (!found)
        return fail(Code::invalid_argument, "there is no user '" + permission.owner + "' in this sandbox");
      uid = *found;
    }
    if (!permission.group.empty()) {
      auto found = resolve_group(users, permission.group);
      if (!found)
        return fail(Code::invalid_argument, "there is no group '" + permission.group + "' in this sandbox");
      gid = *found;
    }
    if (::chown(path.c_str(), uid, gid) < 0) return fail_errno("change owner of " + path);
  }
  if (permission.mode != 0) {
    auto mode = mode_from_digits(permission.mode);
    if (!mode) {
      return fail(Code::invalid_argument,
                  "mode " + std::to_string(permission.mode) + " is no octal number such as 644");
    }
    if (::chmod(path.c_str(), *mode) < 0) return fail_errno("change mode of " + path);
  }
  return {};
}

}  // namespace osb::execd
