#include "docker/container_config.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "docker/base64url.h"

namespace osb::docker {
namespace {

namespace bj = boost::json;

bj::object body_of(const runtime::SandboxSpec& spec, const ContainerRules& rules = {}) {
  return bj::parse(container_body(spec, "sha256:1", "owner", "/state/boot", rules)).as_object();
}

TEST(ContainerConfig, ExecdIsAllThatComesFromTheHost) {
  bj::object body = body_of({.handle = "h", .image = {}});
  EXPECT_EQ(bj::serialize(body["Entrypoint"]), R"(["/opt/opensandbox/boot/execd"])");
  EXPECT_EQ(bj::serialize(body["HostConfig"].at("Mounts")),
            R"([{"Type":"bind","Source":"/state/boot","Target":"/opt/opensandbox/boot","ReadOnly":true}])");
  for (const char* absent : {"Privileged", "Binds", "PortBindings", "Devices", "CapAdd", "PidMode", "Memory"})
    EXPECT_FALSE(body["HostConfig"].as_object().contains(absent)) << absent;
  EXPECT_FALSE(body.contains("Env")) << "variables of a sandbox are not for whoever sees the engine";
}

TEST(ContainerConfig, LabelsOfARequestAreNotOurs) {
  bj::object body =
      body_of({.handle = "h", .image = {}, .labels = {{"team", "red"}, {"opensandbox.io/owner", "x"}}});
  EXPECT_EQ(body["Labels"].at("team"), "red");
  EXPECT_EQ(body["Labels"].at(kOwnerLabel), "owner");
  EXPECT_EQ(body["Labels"].at(kHandleLabel), "h");
}

TEST(ContainerConfig, LimitsAndRules) {
  runtime::SandboxSpec spec{.handle = "h", .image = {}, .read_only_root = true, .shm_bytes = 1 << 20};
  spec.limits.cpu_millis = 1500;
  spec.limits.memory_bytes = 64 << 20;
  spec.limits.pids = 50;
  bj::object host = body_of(spec, {.network_mode = "none",
                                   .drop_capabilities = {"NET_RAW"},
                                   .apparmor_profile = "tight",
                                   .no_new_privileges = true})["HostConfig"]
                        .as_object();
  EXPECT_EQ(host["NanoCpus"], 1'500'000'000);
  EXPECT_EQ(host["Memory"], 64 << 20);
  EXPECT_EQ(host["MemorySwap"], 64 << 20);
  EXPECT_EQ(host["PidsLimit"], 50);
  EXPECT_EQ(host["ShmSize"], 1 << 20);
  EXPECT_EQ(host["ReadonlyRootfs"], true);
  EXPECT_EQ(host["NetworkMode"], "none");
  EXPECT_EQ(bj::serialize(host["CapDrop"]), R"(["NET_RAW"])");
  EXPECT_EQ(bj::serialize(host["SecurityOpt"]), R"(["no-new-privileges:true","apparmor=tight"])");
}

TEST(ContainerConfig, Base64ForHeaders) {
  EXPECT_EQ(to_base64url(""), "");
  EXPECT_EQ(to_base64url("f"), "Zg==");
  EXPECT_EQ(to_base64url("fo"), "Zm8=");
  EXPECT_EQ(to_base64url("foo"), "Zm9v");
  EXPECT_EQ(to_base64url("\xff\xfe\xfd"), "__79");
}

}  // namespace
}  // namespace osb::docker
