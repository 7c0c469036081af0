#include "runtime/image_library.h"

#include <fmt/format.h>

namespace osb::runtime {

std::string to_text(const PullProgress& progress) {
  if (progress.layers == 0) return "asking the registry";
  if (progress.unpacked > 0)
    return fmt::format("unpacking layer {} of {}", progress.unpacked, progress.layers);
  constexpr double kMegabyte = 1e6;
  return fmt::format("{:.1f} of {:.1f} MB downloaded", static_cast<double>(progress.downloaded) / kMegabyte,
                     static_cast<double>(progress.total) / kMegabyte);
}

std::string to_push_text(const PullProgress& progress) {
  if (progress.layers == 0 && progress.total == 0) return "asking the registry";
  if (progress.downloaded == 0 && progress.unpacked < progress.layers)
    return fmt::format("packing layer {} of {}", progress.unpacked + 1, progress.layers);
  constexpr double kMegabyte = 1e6;
  return fmt::format("{:.1f} of {:.1f} MB uploaded", static_cast<double>(progress.downloaded) / kMegabyte,
                     static_cast<double>(progress.total) / kMegabyte);
}

CreateFailure pull_failure(const Error& error) {
  using Kind = CreateFailure::Kind;
  switch (error.code) {
    case Code::not_found:
      return {Kind::image_not_found, error};
    case Code::unauthenticated:
      return {Kind::image_refused, error};
    case Code::unavailable:
    case Code::timeout:
    case Code::permission_denied:
      return {Kind::image_unreachable, error};
    case Code::corrupt:
    case Code::too_large:
    case Code::unsupported:
    case Code::invalid_argument:
    case Code::exhausted:  // there is no room for it here
      return {Kind::image_invalid, error};
    default:
      return {Kind::step_failed, error};
  }
}

}  // namespace osb::runtime
