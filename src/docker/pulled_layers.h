#pragma once

// How far a pull is, from what an engine says of each layer.

#include <map>
#include <string>

#include "docker/answers.h"

namespace osb::docker {

class PulledLayers {
 public:
  // What to tell people after this line: "12.0 of 48.0 MB downloaded", as the native runtime has it, or the
  // line itself as long as no layer was named.
  std::string hear(const PullLine& line);

 private:
  struct Layer {
    uint64_t downloaded = 0, total = 0;
    bool is_here = false, is_unpacked = false;
  };
  std::string text() const;

  std::map<std::string, Layer> layers_;
};

}  // namespace osb::docker
