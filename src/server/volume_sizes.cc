#include "server/volume_sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/record.h"

namespace osb::server {
namespace {

constexpr auto kLimit = std::chrono::seconds(10);

}  // namespace

std::vector<sandbox::Volume> sized_volumes(const std::string& record) {
  // Few sandboxes have any: no need to read the record of all others.
  if (record.find("\"sizeBytes\"") == record.npos) return {};
  auto volumes = volumes_of(record);
  if (!volumes) return {};
  std::erase_if(*volumes, [](const sandbox::Volume& one) {
    return one.backend != sandbox::Volume::Backend::claim || !one.size_bytes;
  });
  return std::move(*volumes);
}

io::Task<std::vector<std::string>> other_sizes(runtime::Runtime& runtime, std::string owner,
                                               std::vector<sandbox::Volume> asked) {
  std::vector<std::string> sentences;
  if (asked.empty()) co_return sentences;
  auto all = co_await io::with_deadline(kLimit, "look at volumes", runtime.list_volumes(std::move(owner)));
  if (!all) co_return sentences;
  for (const sandbox::Volume& one : asked) {
    auto found = std::ranges::find(*all, one.source, &runtime::NamedVolume::name);
    if (found == all->end() || found->size_bytes == one.size_bytes) continue;
    std::string has = found->size_bytes ? fmt::format("holds {} bytes", *found->size_bytes) : "has no limit";
    sentences.push_back(fmt::format(
        "volume {} {}, and not the {} bytes that pvc.storage asks for: one that is there keeps its size",
        one.source, has, *one.size_bytes));
  }
  co_return sentences;
}

}  // namespace osb::server
