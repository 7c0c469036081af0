#pragma once

// Processes that may write the store of images (registry/keeper.h): started when the server asks for one,
// each for one order. They are root's, as the store is, and take their settings from the configuration that
// root gave, so that the server chooses no more than which image.

#include <vector>

#include "base/fd.h"
#include "launcher/settings.h"

namespace osb::launcher {

class ImageKeepers {
 public:
  explicit ImageKeepers(const Settings& settings) : settings_(&settings) {}

  // The server's end of its channel. Code::exhausted while too many are at work, Code::unsupported without
  // root.
  Result<Fd> start();

 private:
  void forget_ended();

  const Settings* settings_;
  std::vector<Fd> running_;  // pidfds
};

}  // namespace osb::launcher
