#pragma once

// What a sandbox's first own process is started with: the image's word, then the request's, then ours.

#include "image/image.h"
#include "runtime/native/control.h"
#include "runtime/runtime.h"

namespace osb::runtime {

EntryProcess entry_process(const Claim& claim, const Limits& limits, const image::ImageConfig& image);

}  // namespace osb::runtime
