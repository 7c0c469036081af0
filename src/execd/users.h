#pragma once

// /etc/passwd and /etc/group, read directly: a static executable that runs in any image has no name service.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace osb::execd {

struct User {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home;
  std::string shell;
};

// A snapshot of both files. Broken lines are skipped.
class Users {
 public:
  // What the files say now; missing files are empty ones.
  static Users load();
  static Users parse(std::string_view passwd, std::string_view group);

  const User* find(std::string_view name) const;
  const User* find(uid_t uid) const;
  std::optional<gid_t> find_group(std::string_view name) const;
  // The name, or the number in decimal.
  std::string user_name(uid_t uid) const;
  std::string group_name(gid_t gid) const;
  // Supplementary groups of a user, its primary group left out.
  std::vector<gid_t> groups_of(const User& user) const;

 private:
  struct Group {
    std::string name;
    gid_t gid = 0;
    std::vector<std::string> members;
  };
  std::vector<User> users_;
  std::vector<Group> groups_;
  std::map<uid_t, size_t> by_uid_;
  std::map<gid_t, size_t> by_gid_;
};

// An owner or group as a request names it: a name, or (our extension) a decimal id. Nothing when unknown.
std::optional<uid_t> resolve_user(const Users& users, std::string_view text);
std::optional<gid_t> resolve_group(const Users& users, std::string_view text);

}  // namespace osb::execd
