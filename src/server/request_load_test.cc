#include "server/request_load.h"

#include <gtest/gtest.h>

namespace osb::server {
namespace {

TEST(RequestLoad, OnlyWhatMakesWorkCounts) {
  for (std::string_view method : {"GET", "HEAD", "DELETE", "OPTIONS"}) {
    EXPECT_EQ(load_of(method, "/v1/sandboxes/x"), Load::light);
    EXPECT_EQ(load_of(method, "/sandboxes"), Load::light);
  }
  for (std::string_view path :
       {"/sandboxes/x/pause", "/v1/sandboxes/x/resume", "/sandboxes/x/renew-expiration"})
    EXPECT_EQ(load_of("POST", path), Load::light) << path;
  EXPECT_EQ(load_of("POST", "/sandboxes"), Load::create);
  EXPECT_EQ(load_of("POST", "/v1/sandboxes"), Load::create);
  EXPECT_EQ(load_of("POST", "/sandboxes/x/snapshots"), Load::other);
  EXPECT_EQ(load_of("PATCH", "/v1/sandboxes/x/metadata"), Load::other);
  EXPECT_EQ(load_of("POST", "/pause"), Load::other);
}

}  // namespace
}  // namespace osb::server
