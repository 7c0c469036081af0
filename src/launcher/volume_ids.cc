#include "launcher/volume_ids.h"

namespace osb::launcher {
namespace {

std::string line(uint32_t of_files, uint32_t of_sandbox, uint32_t count) {
  return std::to_string(of_files) + " " + std::to_string(of_sandbox) + " " + std::to_string(count);
}

// What belongs to somebody who is not mapped belongs to nobody inside.
std::string map_with(uint32_t first_id, uint32_t owner, HostRoot root) {
  bool is_ours = owner >= kFirstVolumeId && owner - kFirstVolumeId < kIdsPerSandbox;
  if (is_ours || (owner == 0 && root == HostRoot::nobody))
    return line(kFirstVolumeId, first_id, kIdsPerSandbox);
  return line(owner, first_id, 1) + "\n" + line(kFirstVolumeId + 1, first_id + 1, kIdsPerSandbox - 1);
}

// Whether somebody who is not root may write to a directory with this owner and mode.
bool is_for_others(const struct stat& directory) {
  return directory.st_uid != 0 || (directory.st_mode & S_IWOTH) != 0 ||
         (directory.st_gid != 0 && (directory.st_mode & S_IWGRP) != 0);
}

}  // namespace

IdMaps volume_maps(uint32_t first_id) {
  return owner_maps(first_id, kFirstVolumeId, kFirstVolumeId, HostRoot::nobody);
}

IdMaps owner_maps(uint32_t first_id, uid_t uid, gid_t gid, HostRoot root) {
  return {map_with(first_id, uid, root), map_with(first_id, gid, root)};
}

bool is_roots(const struct stat& directory) { return directory.st_uid == 0 || directory.st_gid == 0; }

Maker maker_in(const struct stat& directory) {
  Maker maker{.uid = directory.st_uid == 0 ? kFirstVolumeId : directory.st_uid,
              .gid = directory.st_gid == 0 ? kFirstVolumeId : directory.st_gid};
  maker.by_root = !is_for_others(directory);
  return maker;
}

}  // namespace osb::launcher
