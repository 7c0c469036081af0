#pragma once

// The keys of the API and whose each is. A configuration has one today, of the default owner; whatever will
// make more (a file, a table of tenants) ends here. Immutable.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace osb::server {

struct Key {
  std::string owner, key;
};

class Keys {
 public:
  explicit Keys(std::vector<Key> keys);

  bool empty() const { return keys_.empty(); }
  // Whose key it is; in a time that does not say which one it is like.
  std::optional<std::string> owner_of(std::string_view key) const;
  const std::vector<Key>& all() const { return keys_; }

 private:
  std::vector<Key> keys_;
};

}  // namespace osb::server
