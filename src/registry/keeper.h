#pragma once

// The process that brings images here: root, started by the launcher when the server asks for one, gone when
// its one order is done or the server is gone. It reads no byte of a registry itself: a fetcher speaks to it,
// a worker unpacks what came (image/worker.h), and what both say is checked.

#include <sys/types.h>

#include <map>
#include <string>

#include "registry/exchange.h"
#include "registry/keeper_messages.h"

namespace osb::registry {

inline constexpr int kKeeperChannelFd = 3;

// From root's own configuration; the server has no say in them.
struct KeeperSettings {
  std::string state_dir;
  gid_t service_gid = 0;
  std::string default_registry;
  std::map<std::string, std::string> mirrors = {};  // registry -> where to ask first
  HttpSettings http = {};
  std::vector<std::string> ca_files = {};
  std::string auth_file = {};  // of `docker login`; "" for none
  // Of images that are configured: name -> root directory.
  std::map<std::string, std::string> directories = {};
  uint64_t disk_budget = 0;  // bytes that images may take; 0 for any number
};

// The whole life of it. An exit status.
int run_keeper(int channel, KeeperSettings settings);

}  // namespace osb::registry
