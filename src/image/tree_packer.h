#pragma once

// The entries of a directory tree, one after the other, into a tar archive that is open. Names in order, so
// that the same tree gives the same bytes. Follows no link, stays on one file system.

#include <set>
#include <string>

#include "base/fd.h"
#include "image/libraries.h"

namespace osb::image {

struct PackRules {
  // A plain root is packed as it is, sockets left out. A layer is packed as registries want layers: what the
  // overlay marks as removed becomes files named .wh.NAME, and nothing of this host is in it but the tree
  // (times in whole seconds, no devices), so that the bytes are the same whenever it is packed.
  bool as_layer = false;
  // Of a layer: directories that hide what the layers below have. "" is the root. Marks that only root can
  // read, so the caller has read them.
  std::set<std::string> opaque = {};
};

// Errors name the entry. load_libraries() comes first.
Result<void> pack_tree(struct archive* out, int directory, const PackRules& rules);

}  // namespace osb::image
