#include "execd/users.h"

#include "base/fd.h"
#include "base/strings.h"

namespace osb::execd {
namespace {

// Not the highest number: to the kernel it means "leave it as it is", and whoever was to be somebody else
// would stay root.
std::optional<uint32_t> parse_id(std::string_view text) {
  auto id = parse_number<uint32_t>(text);
  return id == UINT32_MAX ? std::nullopt : id;
}

}  // namespace

Users Users::load() {
  constexpr size_t kLimit = 4 << 20;
  return parse(read_file("/etc/passwd", kLimit).value_or(""), read_file("/etc/group", kLimit).value_or(""));
}

Users Users::parse(std::string_view passwd, std::string_view group) {
  Users out;
  for (std::string_view line : split(passwd, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() < 4 || fields[0].empty()) continue;
    auto uid = parse_id(fields[2]);
    auto gid = parse_id(fields[3]);
    if (!uid || !gid) continue;
    User user{std::string(fields[0]), *uid, *gid, {}, {}};
    if (fields.size() > 5) user.home = fields[5];
    if (fields.size() > 6) user.shell = fields[6];
    out.by_uid_.emplace(*uid, out.users_.size());
    out.users_.push_back(std::move(user));
  }
  for (std::string_view line : split(group, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() < 3 || fields[0].empty()) continue;
    auto gid = parse_id(fields[2]);
    if (!gid) continue;
    Group entry{std::string(fields[0]), *gid, {}};
    if (fields.size() > 3) {
      for (std::string_view member : split(fields[3], ',')) {
        if (!trim(member).empty()) entry.members.emplace_back(trim(member));
      }
    }
    out.by_gid_.emplace(*gid, out.groups_.size());
    out.groups_.push_back(std::move(entry));
  }
  return out;
}

const User* Users::find(std::string_view name) const {
  for (const User& user : users_) {
    if (user.name == name) return &user;
  }
  return nullptr;
}

const User* Users::find(uid_t uid) const {
  auto it = by_uid_.find(uid);
  return it == by_uid_.end() ? nullptr : &users_[it->second];
}

std::optional<gid_t> Users::find_group(std::string_view name) const {
  for (const Group& group : groups_) {
    if (group.name == name) return group.gid;
  }
  return std::nullopt;
}

std::string Users::user_name(uid_t uid) const {
  const User* user = find(uid);
  return user ? user->name : std::to_string(uid);
}

std::string Users::group_name(gid_t gid) const {
  auto it = by_gid_.find(gid);
  return it == by_gid_.end() ? std::to_string(gid) : groups_[it->second].name;
}

std::vector<gid_t> Users::groups_of(const User& user) const {
  std::vector<gid_t> out;
  for (const Group& group : groups_) {
    if (group.gid == user.gid) continue;
    for (const std::string& member : group.members) {
      if (member == user.name) {
        out.push_back(group.gid);
        break;
      }
    }
  }
  return out;
}

std::optional<uid_t> resolve_user(const Users& users, std::string_view text) {
  if (const User* user = users.find(text)) return user->uid;
  return parse_id(text);
}

std::optional<gid_t> resolve_group(const Users& users, std::string_view text) {
  if (auto gid = users.find_group(text)) return gid;
  return parse_id(text);
}

}  // namespace osb::execd
