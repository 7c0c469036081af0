#pragma once

// A picture that a cell gave: inline where the terminal can, by the protocol that it is known to speak, else
// a file.

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"

namespace osb::cli {

struct Picture {
  std::string type;    // image/png, image/jpeg
  std::string base64;  // as it came, with line ends perhaps
};

enum class PictureProtocol { none, kitty, iterm };
// By what terminals say of themselves in the environment.
PictureProtocol picture_protocol(const std::function<const char*(const char*)>& environment);

// What makes the terminal draw it; nothing when it cannot draw this one.
std::optional<std::string> inline_picture(const Picture& picture, PictureProtocol protocol);

// Into a new file of the present directory: osb-picture-1.png. Its name. Code::corrupt for what is no base64.
Result<std::string> save_picture(const Picture& picture);

}  // namespace osb::cli
