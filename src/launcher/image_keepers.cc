#include "launcher/image_keepers.h"

#include <poll.h>

#include "launcher/service.h"
#include "sys/process.h"

namespace osb::launcher {
namespace {

constexpr size_t kMost = 8;  // the server has fewer at work; this is for one that was taken over
constexpr int kChannelFd = 3;

}  // namespace

void ImageKeepers::forget_ended() {
  std::erase_if(running_, [](const Fd& process) {
    pollfd ended{process.get(), POLLIN, 0};
    return ::poll(&ended, 1, 0) > 0;
  });
}

Result<Fd> ImageKeepers::start() {
  if (settings_->rootless)
    return fail(Code::unsupported, "a service without root keeps no images: their files have owners");
  forget_ended();
  if (running_.size() >= kMost) return fail(Code::exhausted, "too many images are on their way at once");
  ServiceSpec spec;
  spec.name = "image keeper";
  spec.executable = settings_->server_fd;
  spec.arguments = {"osb", "image-keeper", "--state-dir=" + settings_->state_dir,
                    "--service-gid=" + std::to_string(settings_->service_gid)};
  spec.rights = ServiceSpec::Rights::root;
  spec.channel_as = kChannelFd;
  auto process = TRY(spawn_service(spec));
  // A child of ours that nobody has waited for yet: the number is still its own.
  if (auto pidfd = sys::open_pidfd(process.pid)) running_.push_back(std::move(*pidfd));
  return std::move(process.channel);
}

}  // namespace osb::launcher
