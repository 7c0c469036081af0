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

// Pictures as new files of the present directory: osb-picture-1.png. What runs in a sandbox decides how many
// there are and how large, so there is a bound for all that one of these saves.
class PictureFiles {
 public:
  explicit PictureFiles(int most_files = 100, size_t most_bytes = 100'000'000)
      : most_files_(most_files), most_bytes_(most_bytes) {}
  // The file's name. Code::corrupt for what is no base64, Code::exhausted beyond the bound.
  Result<std::string> save(const Picture& picture);

 private:
  int most_files_;
  size_t most_bytes_;
  int number_ = 0;  // of the last name that was tried
  int files_ = 0;
  size_t bytes_ = 0;
};

}  // namespace osb::cli
