#include "server/keys.h"

#include "base/strings.h"

namespace osb::server {

Keys::Keys(std::vector<Key> keys) : keys_(std::move(keys)) {
  // A key that everybody has opens nothing, and nobody is no owner.
  std::erase_if(keys_, [](const Key& key) { return key.key.empty() || key.owner.empty(); });
}

std::optional<std::string> Keys::owner_of(std::string_view key) const {
  const Key* found = nullptr;
  for (const Key& known : keys_) {
    if (constant_time_equals(key, known.key)) found = &known;
  }
  return found == nullptr ? std::nullopt : std::optional(found->owner);
}

}  // namespace osb::server
