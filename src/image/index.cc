#include "image/index.h"

#include <sys/stat.h>

#include <boost/json.hpp>

#include "base/fd.h"
#include "image/digest.h"
#include "json/decode.h"

namespace osb::image {
namespace {

namespace bj = json::bj;
constexpr size_t kMaxBytes = 64 << 20;
constexpr int64_t kVersion = 1;

}  // namespace

const Image* Index::find(const std::string& name) const {
  auto named = names.find(name);
  if (named == names.end()) return nullptr;
  auto found = images.find(named->second);
  return found == images.end() ? nullptr : &found->second;
}

Result<const Image*> Index::find_id(std::string_view beginning, std::optional<std::string_view> owner) const {
  constexpr size_t kLeastOfAnId = 8;
  const Image* found = nullptr;
  auto at = beginning.size() < kLeastOfAnId ? images.end() : images.lower_bound(std::string(beginning));
  for (; at != images.end() && at->first.starts_with(beginning); ++at) {
    if (owner && !at->second.is_for(*owner)) continue;
    if (found) {
      return fail(Code::invalid_argument, "the ids of several images begin with " + std::string(beginning) +
                                              "\n  remedy: give more of the id");
    }
    found = &at->second;
  }
  if (found) return found;
  return fail(Code::not_found, "there is no image named " + std::string(beginning.substr(0, 300)) +
                                   "\n  remedy: osb images ls");
}

std::string encode(const Index& index) {
  bj::array images;
  for (const auto& [id, image] : index.images) images.push_back(to_json(image));
  bj::object names;
  for (const auto& [name, id] : index.names) names[name] = id;
  return json::print(
             bj::object{{"version", kVersion}, {"images", std::move(images)}, {"names", std::move(names)}}) +
         "\n";
}

Result<Index> decode_index(std::string_view text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "index");
  if (field["version"].integer().value_or(0) != kVersion) {
    return fail(Code::unsupported, "the index of images is of another version of this program");
  }
  Index index;
  for (const json::Field& item : field["images"].array().value_or(std::vector<json::Field>())) {
    if (!item.present()) continue;
    Image image = TRY(image_from_json(*item.raw()));
    index.images.emplace(image.id, std::move(image));
  }
  index.names = field["names"].string_map().value_or(std::map<std::string, std::string>());
  if (!issues.empty()) return fail(Code::corrupt, json::to_string(issues.list().front().path) + " is wrong");
  for (const auto& [name, id] : index.names) {
    if (!index.images.contains(id)) return fail(Code::corrupt, "the name " + name + " is of no image");
  }
  return index;
}

std::string index_path(const std::string& state_dir) {
  return state_dir + "/" + kCatalogDirectory + "/index.json";
}

Result<Index> load_index(const std::string& state_dir) {
  auto text = read_file(index_path(state_dir), kMaxBytes);
  if (!text && text.error().code == Code::not_found) return Index{};
  if (!text) return std::unexpected(std::move(text.error()).in("read the index of images"));
  return in_context("read the index of images", decode_index(*text));
}

Result<std::shared_ptr<const Index>> IndexReader::current() {
  struct stat info{};
  Stamp now;
  // Looked at before it is read: a change in between is found the next time.
  if (::stat(index_path(state_dir_).c_str(), &info) == 0) {
    now = {info.st_ino, static_cast<uint64_t>(info.st_size), info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
  }
  if (index_ && now == stamp_) return index_;
  index_ = std::make_shared<const Index>(TRY(load_index(state_dir_)));
  stamp_ = now;
  return index_;
}

}  // namespace osb::image
