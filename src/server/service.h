#pragma once

// What every route needs, in one place. Borrowed by the handlers; lives as long as the server runs.

#include "http/router.h"
#include "runtime/runtimes.h"
#include "server/access_renewal.h"
#include "server/change_feed.h"
#include "server/config.h"
#include "server/connection_pool.h"
#include "server/create_once.h"
#include "server/create_queue.h"
#include "server/endpoint_token.h"
#include "server/health.h"
#include "server/keys.h"
#include "server/lifecycle.h"
#include "server/list_cache.h"
#include "server/pools.h"
#include "server/rendered_rows.h"
#include "server/sandbox_traffic.h"
#include "server/snapshots.h"
#include "store/repository.h"

namespace osb::server {

struct Service {
  const Config& config;
  const Keys& keys;
  const EndpointTokens& tokens;
  store::Repository& store;
  runtime::Runtimes& runtimes;
  Lifecycle& lifecycle;
  Snapshots& snapshots;
  Pools& pools;
  ConnectionPool& connections;
  SandboxTraffic& traffic;
  CreateQueue& creates;
  CreateOnce& once;
  ChangeFeed& changes;
  AccessRenewal* renewal;  // null where uses renew nothing
  io::TaskGroup& pumps;    // of connections that are no sockets
  const Clock& clock;
  ListCache lists = {};
  RenderedRows rendered = {};
  Health health = {};
  std::string isolation = {};  // the runtime's isolation tier, for /health; may be empty
};

}  // namespace osb::server
