#pragma once

// Which images this host has, under which names: one file, replaced as a whole, so that a reader sees the
// state before or after a change and nothing between.
//
// Root writes it, the unprivileged server reads it; it lies outside the directory of the layers, which the
// server may not look into.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "image/image.h"

namespace osb::image {

struct Index {
  std::map<std::string, Image> images;  // by id
  std::map<std::string, std::string>
      names;  // name -> id; an image may have none, as long as a sandbox uses it

  const Image* find(const std::string& name) const;
  // The image whose id begins like this, with 8 digits at least; not one that somebody else owns, unless
  // nobody in particular asks. Code::not_found; Code::invalid_argument where several ids begin so.
  Result<const Image*> find_id(std::string_view beginning, std::optional<std::string_view> owner = {}) const;
};

std::string encode(const Index& index);
Result<Index> decode_index(std::string_view text);

// Below the state directory.
inline constexpr char kCatalogDirectory[] = "catalog";
std::string index_path(const std::string& state_dir);
// A missing file is an empty index.
Result<Index> load_index(const std::string& state_dir);

// For the server: looks whether the file changed and reads it again only then. Belongs to one thread.
class IndexReader {
 public:
  explicit IndexReader(std::string state_dir) : state_dir_(std::move(state_dir)) {}
  // An index that cannot be read is an error every time, never an old one.
  Result<std::shared_ptr<const Index>> current();

 private:
  struct Stamp {
    uint64_t inode = 0, size = 0;
    int64_t seconds = 0, nanoseconds = 0;
    bool operator==(const Stamp&) const = default;
  };
  std::string state_dir_;
  Stamp stamp_;
  std::shared_ptr<const Index> index_;
};

}  // namespace osb::image
