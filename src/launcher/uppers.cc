#include "launcher/uppers.h"

#include <fcntl.h>

#include <string_view>

#include "launcher/disk.h"
#include "sys/directory.h"

namespace osb::launcher {

Result<Uppers> open_uppers(int sandbox) {
  auto image = open_beneath(sandbox, "disk.img", O_RDONLY);
  if (!image && image.error().code == Code::not_found)
    return Uppers{TRY(open_at(sandbox, ".", O_RDONLY | O_DIRECTORY)), false};
  if (!image) return std::unexpected(std::move(image.error()));
  Fd disk(mount_disk_again(image->get()));
  if (disk.get() == -ENOENT)
    return fail(Code::wrong_state,
                "its disk was put away when it ended, as that of every sandbox with resourceLimits.disk");
  if (!disk.valid()) return fail_errno("mount the sandbox's disk", -disk.get());
  return Uppers{TRY(open_at(disk.get(), ".", O_RDONLY | O_DIRECTORY)), true};
}

Result<std::vector<Upper>> find_uppers(const Uppers& uppers) {
  constexpr std::string_view kUpper = ".upper";
  std::vector<Upper> found;
  for (const std::string& name : TRY(sys::names_in(uppers.directory.get()))) {
    if (!name.ends_with(kUpper)) continue;
    Fd directory = TRY(open_beneath(uppers.directory.get(), name, O_RDONLY | O_DIRECTORY));
    found.push_back({name.substr(0, name.size() - kUpper.size()), std::move(directory)});
  }
  return found;
}

}  // namespace osb::launcher
