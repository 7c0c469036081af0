#include "docker/container_config.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "base/limit_bounds.h"
#include "docker/base64url.h"

namespace osb::docker {
namespace {

namespace bj = boost::json;

bj::object body_of(const runtime::SandboxSpec& spec, const ContainerRules& rules = {}) {
  return bj::parse(container_body(spec, {.id = "sha256:1", .platform = {}}, "owner", "/state/boot", rules))
      .as_object();
}

TEST(ContainerConfig, ExecdIsAllThatComesFromTheHost) {
  bj::object body = body_of({.handle = "h", .image = {}});
  EXPECT_EQ(bj::serialize(body["Entrypoint"]), R"(["/opt/opensandbox/boot/execd"])");
  EXPECT_EQ(bj::serialize(body["HostConfig"].at("Mounts")),
            R"([{"Type":"bind","Source":"/state/boot","Target":"/opt/opensandbox/boot","ReadOnly":true}])");
  for (const char* absent : {"Privileged", "Binds", "PortBindings", "Devices", "CapAdd", "PidMode", "Memory"})
    EXPECT_FALSE(body["HostConfig"].as_object().contains(absent)) << absent;
  EXPECT_EQ(bj::serialize(body["Healthcheck"]), R"({"Test":["NONE"]})") << "an image's runs before execd";
  EXPECT_FALSE(body.contains("Env")) << "variables of a sandbox are not for whoever sees the engine";
}

TEST(ContainerConfig, TheEnginesRuntimeIsNamedWhenSomebodyChoseIt) {
  EXPECT_FALSE(body_of({.handle = "h", .image = {}})["HostConfig"].as_object().contains("Runtime"));
  ContainerRules rules;
  rules.oci_runtime = "kata-runtime";
  bj::object body = body_of({.handle = "h", .image = {}}, rules);
  EXPECT_EQ(body["HostConfig"].at("Runtime"), "kata-runtime");
  EXPECT_EQ(bj::serialize(body["Cmd"]), R"(["--secret=/opt/opensandbox/boot/secret","--log-level=4"])")
      << "its kernel takes no sockets";
}

TEST(ContainerConfig, PortsArePublishedWhenSomebodyAsksForThat) {
  ContainerRules rules;
  rules.publish = {.host = "127.0.0.1", .ports = "40000-40100"};
  bj::object body = body_of({.handle = "h", .image = {}}, rules);
  EXPECT_EQ(bj::serialize(body["HostConfig"].at("PortBindings")),
            R"({"44772/tcp":[{"HostIp":"127.0.0.1","HostPort":"40000-40100"}],)"
            R"("8080/tcp":[{"HostIp":"127.0.0.1","HostPort":"40000-40100"}]})");
  EXPECT_EQ(bj::serialize(body["ExposedPorts"]), R"({"44772/tcp":{},"8080/tcp":{}})");
  EXPECT_NE(bj::serialize(body["Cmd"]).find("--open-port=44772"), std::string::npos);
  EXPECT_NE(bj::serialize(body["Cmd"]).find("--container="), std::string::npos) << "the server's way stays";
  body = body_of({.handle = "h", .image = {}, .network = runtime::NetworkPolicy()}, rules);
  EXPECT_FALSE(body["HostConfig"].as_object().contains("PortBindings")) << "one with a policy has no ports";
  EXPECT_EQ(bj::serialize(body["Cmd"]).find("--open-port"), std::string::npos);
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
  EXPECT_EQ(host["CpuPeriod"], 100'000);
  EXPECT_EQ(host["CpuQuota"], 150'000);
  EXPECT_FALSE(host.contains("NanoCpus")) << "nobody knows whether the engine has so many";
  EXPECT_EQ(host["Memory"], 64 << 20);
  EXPECT_EQ(host["MemorySwap"], 64 << 20);
  EXPECT_EQ(host["PidsLimit"], 50);
  EXPECT_EQ(host["ShmSize"], 1 << 20);
  EXPECT_EQ(host["ReadonlyRootfs"], true);
  EXPECT_EQ(host["NetworkMode"], "none");
  EXPECT_EQ(bj::serialize(host["CapDrop"]), R"(["NET_RAW"])");
  EXPECT_EQ(bj::serialize(host["SecurityOpt"]), R"(["no-new-privileges=true","apparmor=tight"])");
}

TEST(ContainerConfig, FilesDiskAndGpus) {
  runtime::SandboxSpec spec{.handle = "h", .image = {}};
  bj::object plain = body_of(spec)["HostConfig"].as_object();
  for (const char* absent : {"Ulimits", "StorageOpt", "DeviceRequests"})
    EXPECT_FALSE(plain.contains(absent)) << absent;
  spec.limits.open_files = 64;
  spec.limits.disk_bytes = 1 << 30;
  spec.limits.gpus = sandbox::kAllGpus;
  bj::object body = body_of(spec);
  bj::object host = body["HostConfig"].as_object();
  EXPECT_EQ(bj::serialize(host["Ulimits"]), R"([{"Name":"nofile","Soft":4096,"Hard":4096}])")
      << "execd needs more than what runs there";
  EXPECT_NE(bj::serialize(body["Cmd"]).find("--work-open-files=64"), std::string::npos);
  EXPECT_EQ(bj::serialize(host["StorageOpt"]), R"({"size":"1073741824"})");
  EXPECT_EQ(bj::serialize(host["DeviceRequests"]), R"([{"Count":-1,"Capabilities":[["gpu"]]}])");
  spec.limits.open_files = 100'000;
  spec.limits.gpus = 2;
  host = body_of(spec)["HostConfig"].as_object();
  EXPECT_EQ(host["Ulimits"].at(0).at("Hard"), 100'000);
  EXPECT_EQ(host["DeviceRequests"].at(0).at("Count"), 2);
}

TEST(ContainerConfig, WhatTheOperatorGivesEveryContainer) {
  ContainerRules rules;
  rules.seccomp_profile = R"({"defaultAction":"SCMP_ACT_ALLOW"})";
  rules.binds = {"/srv/data:/data:ro"};
  bj::object host = body_of({.handle = "h", .image = {}}, rules)["HostConfig"].as_object();
  EXPECT_EQ(host["SecurityOpt"].at(1), R"(seccomp={"defaultAction":"SCMP_ACT_ALLOW"})");
  EXPECT_EQ(bj::serialize(host["Binds"]), R"(["/srv/data:/data:ro"])");
}

TEST(ContainerConfig, SharedMemoryIsThatOfANativeSandbox) {
  runtime::SandboxSpec spec{.handle = "h", .image = {}};
  EXPECT_EQ(body_of(spec)["HostConfig"].at("ShmSize"), 1 << 30);
  spec.limits.memory_bytes = 256 << 20;
  EXPECT_EQ(body_of(spec)["HostConfig"].at("ShmSize"), 128 << 20);
  spec.limits.memory_bytes = 1;
  EXPECT_EQ(body_of(spec)["HostConfig"].at("ShmSize"), limit_bounds::kMinShmBytes);
}

TEST(ContainerConfig, MountsAndWhatExecdIsToLookAt) {
  using Kind = ContainerMount::Kind;
  std::vector<ContainerMount> mounts = {
      {.kind = Kind::host_path, .source = "/srv/a", .target = "/data", .read_only = true},
      {.kind = Kind::volume, .source = "cache", .target = "/cache", .labels = {{"l", "v"}}}};
  bj::object body = bj::parse(container_body({.handle = "h", .image = {}}, {.id = "sha256:1", .platform = {}},
                                             "owner", "/state/boot", {}, mounts))
                        .as_object();
  const bj::array& all = body["HostConfig"].at("Mounts").as_array();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(bj::serialize(all[1]), R"({"Type":"bind","Source":"/srv/a","Target":"/data","ReadOnly":true})");
  EXPECT_EQ(bj::serialize(all[2]), R"({"Type":"volume","Source":"cache","Target":"/cache","ReadOnly":false,)"
                                   R"("VolumeOptions":{"Labels":{"l":"v"}}})");
  EXPECT_EQ(bj::serialize(body["Cmd"]),
            R"(["--container=/opt/opensandbox/boot/hub","--log-level=4","--shown=/data"])");
  EXPECT_EQ(body["Labels"].at(kVolumesLabel), R"(["cache"])");
  EXPECT_EQ(volumes_in({{kVolumesLabel, R"(["cache"])"}}), std::vector<std::string>{"cache"});
  for (const char* wrong : {"", "{}", "[1", "7", "null"})
    EXPECT_TRUE(volumes_in({{kVolumesLabel, wrong}}).empty()) << wrong;
}

TEST(ContainerConfig, PartsOfVolumesAreTheHostsAndTheVolumes) {
  std::vector<ContainerMount> mounts = {{.kind = ContainerMount::Kind::host_path,
                                         .source = "/engine/volumes/cache/_data/a",
                                         .target = "/data",
                                         .volume = "cache"}};
  bj::object body = bj::parse(container_body({.handle = "h", .image = {}}, {.id = "sha256:1", .platform = {}},
                                             "owner", "/state/boot", {}, mounts))
                        .as_object();
  EXPECT_EQ(bj::serialize(body["HostConfig"].at("Mounts").as_array()[1]),
            R"({"Type":"bind","Source":"/engine/volumes/cache/_data/a","Target":"/data","ReadOnly":false})");
  EXPECT_EQ(body["Labels"].at(kVolumesLabel), R"(["cache"])");
  EXPECT_EQ(body["Labels"].at(kHeldLabel), "opensandbox-volumes-h");
  mounts[0].target = "/tmp";
  runtime::SandboxSpec sealed{.handle = "h", .image = {}};
  sealed.read_only_root = true;
  body = bj::parse(
             container_body(sealed, {.id = "sha256:1", .platform = {}}, "owner", "/state/boot", {}, mounts))
             .as_object();
  EXPECT_EQ(bj::serialize(body["HostConfig"].at("Tmpfs")), R"({"/run":"mode=755"})")
      << "nothing over a mount";
  mounts[0].target = "/data";
  body = bj::parse(container_body({.handle = "h", .image = {}}, {.id = "sha256:1", .platform = {}}, "owner",
                                  "/state/boot", {}, mounts))
             .as_object();
  EXPECT_EQ(bj::serialize(body["Cmd"]),
            R"(["--container=/opt/opensandbox/boot/hub","--log-level=4","--shown=/data"])");
}

TEST(ContainerConfig, TheSignalThatStopsIt) {
  auto words = [](std::string signal) {
    Image image{.id = "sha256:1", .platform = {}, .stop_signal = std::move(signal)};
    return bj::serialize(
        bj::parse(container_body({.handle = "h", .image = {}}, image, "owner", "/boot", {})).at("Cmd"));
  };
  for (const auto& [written, number] : std::map<std::string, std::string>{{"SIGWINCH", "28"},
                                                                          {"28", "28"},
                                                                          {"usr1", "10"},
                                                                          {"SIGRTMIN+3", "37"},
                                                                          {"RTMAX-1", "63"},
                                                                          {"64", "64"}}) {
    EXPECT_THAT(words(written), testing::HasSubstr("\"--stop-signal=" + number + "\"")) << written;
  }
  for (const char* written :
       {"", "SIGTERM", "INT", "3", "SIGKILL", "9", "17", "19", "SIGCHLD", "0", "-1", "65", "SIGRTMIN+31",
        "RTMIN+300", "RTMAX-31", "RTMIN+", "RTMIN+-1", "nonsense"}) {
    EXPECT_THAT(words(written), testing::Not(testing::HasSubstr("stop-signal"))) << written;
  }
}

TEST(ContainerConfig, OneOnAnotherHostHasExecdFromAVolume) {
  ContainerRules rules;
  rules.remote = true;
  runtime::SandboxSpec spec{.handle = "h", .image = {}, .labels = {{kBootLabel, "x"}}};
  bj::object body =
      bj::parse(container_body(spec, {.id = "sha256:1", .platform = {}}, "owner", "vol", rules)).as_object();
  EXPECT_EQ(bj::serialize(body["HostConfig"].at("Mounts")),
            R"([{"Type":"volume","Source":"vol","Target":"/opt/opensandbox/boot","ReadOnly":true,)"
            R"("VolumeOptions":{"NoCopy":true}}])");
  EXPECT_EQ(bj::serialize(body["Cmd"]), R"(["--secret=-","--log-level=4"])");
  EXPECT_EQ(body["Labels"].at(kBootLabel), "vol");
  EXPECT_EQ(body["Labels"].at(kVolumesLabel), "[]") << "it is no volume of the sandbox";
  EXPECT_TRUE(body["OpenStdin"].as_bool() && body["StdinOnce"].as_bool());
  rules.oci_runtime = "runsc";
  EXPECT_FALSE(rules.by_network());
  EXPECT_EQ(
      bj::serialize(bj::parse(container_body(spec, {.id = "sha256:1", .platform = {}}, "owner", "vol", rules))
                        .at("Cmd")),
      R"(["--secret=-","--log-level=4"])");
  bj::object near = body_of(spec, {});
  EXPECT_EQ(near["Labels"].at(kBootLabel), "") << "whatever its image says";
  EXPECT_FALSE(near.contains("OpenStdin"));
  bj::object filler = bj::parse(filler_body("sha256:1", "vol", "/x", {{"l", "v"}})).as_object();
  EXPECT_FALSE(filler["HostConfig"].at("Mounts").at(0).at("ReadOnly").as_bool());
  EXPECT_EQ(filler["HostConfig"].at("Mounts").at(0).at("Target"), "/x");
  EXPECT_EQ(filler["HostConfig"].at("NetworkMode"), "none");
  EXPECT_EQ(filler["Labels"].at("l"), "v");
}

TEST(ContainerConfig, ASnapshotHasNothingOfItsSandboxOnIt) {
  bj::object labels =
      bj::parse(commit_body({{kOwnerLabel, "o"}, {kHandleLabel, "h"}, {"team", "red"}}, {}, "o", "s"))
          .at("Labels")
          .as_object();
  for (const char* gone : {kOwnerLabel, kHandleLabel, "team"}) EXPECT_EQ(labels[gone], "") << gone;
  EXPECT_EQ(labels[kSnapshotLabel], "s");
  EXPECT_EQ(labels[kSnapshotOwnerLabel], "o");
  EXPECT_FALSE(bj::parse(commit_body({}, {}, "o", "s")).as_object().contains("Env"));
  EXPECT_EQ(bj::parse(commit_body({}, {"TOKEN", "A"}, "o", "s")).at("Env"), (bj::array{"TOKEN", "A"}))
      << "without a value, which takes them away";
}

TEST(ContainerConfig, PodmanIsToldTheSameByChanges) {
  EXPECT_EQ(
      *commit_changes({{"team", "red"}, {"a b\nUSER root", "x"}}, {"TOKEN", "PATH=/bin:/sbin"}, "o", "s"),
      (std::vector<std::string>{"LABEL team=", "ENV TOKEN=", "ENV PATH=/bin:/sbin",
                                std::string("LABEL ") + kSnapshotOwnerLabel + "=o",
                                std::string("LABEL ") + kSnapshotLabel + "=s"}));
  auto own = commit_changes({}, {"PATH", "HOME", "TERM=vt100"}, "o", "s");
  EXPECT_EQ(own->at(0), "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  EXPECT_EQ(own->at(1), "ENV TERM=vt100") << "HOME stays as it is";
  EXPECT_FALSE(commit_changes({}, {"A\nUSER root"}, "o", "s"));
}

TEST(ContainerConfig, OneWithAPolicyHasNoNetworkOfTheEngine) {
  ContainerRules rules;
  rules.network_mode = "web";
  bj::object plain = body_of({.handle = "h", .image = {}}, rules);
  EXPECT_EQ(plain["HostConfig"].at("NetworkMode"), "web");
  EXPECT_FALSE(plain["HostConfig"].as_object().contains("Dns"));
  EXPECT_EQ(plain["Labels"].at(kEgressLabel), "none") << "whatever its image says";
  EXPECT_EQ(plain["Labels"].at(kVolumesLabel), "[]");
  bj::object policed = body_of({.handle = "h",
                                .image = {},
                                .network = runtime::NetworkPolicy{.allow_the_rest = true},
                                .labels = {{kEgressLabel, "x"}}},
                               rules);
  EXPECT_EQ(policed["HostConfig"].at("NetworkMode"), "none");
  EXPECT_EQ(bj::serialize(policed["HostConfig"].at("Dns")), R"(["127.0.0.1"])");
  EXPECT_EQ(policed["Labels"].at(kEgressLabel), "policy");
  EXPECT_FALSE(policed["HostConfig"].as_object().contains("Sysctls")) << "a host without IPv6 refuses it";
  rules.ipv6 = true;
  policed = body_of({.handle = "h", .image = {}, .network = runtime::NetworkPolicy{}}, rules);
  EXPECT_EQ(bj::serialize(policed["HostConfig"].at("Sysctls")), R"({"net.ipv6.conf.all.disable_ipv6":"0"})");
}

TEST(ContainerConfig, OneWithAPolicyOnAnotherHostSharesTheNetworkOfWhatPolicesIt) {
  ContainerRules rules;
  rules.remote = true;
  rules.network_mode = "web";
  rules.drop_capabilities = {"NET_RAW", "MKNOD"};
  rules.sidecar = "0123";
  runtime::SandboxSpec spec{
      .handle = "h", .image = {}, .network = runtime::NetworkPolicy{.allow_the_rest = true}};
  bj::object body =
      bj::parse(container_body(spec, {.id = "sha256:1", .platform = {}}, "owner", "vol", rules)).as_object();
  EXPECT_EQ(body["HostConfig"].at("NetworkMode"), "container:0123");
  EXPECT_FALSE(body["HostConfig"].as_object().contains("Dns")) << "an engine refuses it there";
  EXPECT_EQ(bj::serialize(body["HostConfig"].at("CapDrop")), R"(["NET_RAW","MKNOD","NET_ADMIN"])")
      << "whatever the configuration says";
  spec.network.reset();
  body =
      bj::parse(container_body(spec, {.id = "sha256:1", .platform = {}}, "owner", "vol", rules)).as_object();
  EXPECT_EQ(body["HostConfig"].at("NetworkMode"), "web");
  EXPECT_EQ(bj::serialize(body["HostConfig"].at("CapDrop")), R"(["NET_RAW","MKNOD"])");
  bj::object beside = bj::parse(sidecar_body({.image_id = "sha256:2",
                                              .handle = "h",
                                              .id = "i",
                                              .owner = "owner",
                                              .boot = "vol",
                                              .environment = {"A=b"}},
                                             rules))
                          .as_object();
  EXPECT_EQ(beside["HostConfig"].at("NetworkMode"), "web");
  EXPECT_EQ(bj::serialize(beside["HostConfig"].at("CapAdd")), R"(["NET_ADMIN"])");
  EXPECT_EQ(bj::serialize(beside["Env"]), R"(["A=b"])");
  EXPECT_EQ(beside["Labels"].at(kHandleLabel), "h") << "it is found when its sandbox was never made";
  EXPECT_EQ(beside["Labels"].at(kSidecarLabel), "i") << "and is not taken for its sandbox";
  EXPECT_EQ(beside["Labels"].at(kVolumesLabel), "[]") << "whatever its image says";
  EXPECT_TRUE(beside["HostConfig"].at("Mounts").at(0).at("ReadOnly").as_bool());
}

TEST(ContainerConfig, Base64ForHeaders) {
  EXPECT_EQ(to_base64url(""), "");
  EXPECT_EQ(to_base64url("f"), "Zg==");
  EXPECT_EQ(to_base64url("fo"), "Zm8=");
  EXPECT_EQ(to_base64url("foo"), "Zm9v");
  EXPECT_EQ(to_base64url("\xff\xfe\xfd"), "__79");
}

TEST(ContainerConfig, ProcessorsAsOtherToolsShowThem) {
  runtime::SandboxSpec spec{.handle = "h", .image = {}};
  spec.limits.cpu_millis = 1500;
  ContainerRules rules;
  rules.processors = 2;
  bj::object host = body_of(spec, rules)["HostConfig"].as_object();
  EXPECT_EQ(host["NanoCpus"], 1'500'000'000);
  EXPECT_FALSE(host.contains("CpuQuota")) << "an engine takes one of them";
  rules.processors = 1;
  host = body_of(spec, rules)["HostConfig"].as_object();
  EXPECT_FALSE(host.contains("NanoCpus")) << "it would refuse them";
  EXPECT_EQ(host["CpuQuota"], 150'000);
}

TEST(ContainerConfig, TheImageAsItIsCalled) {
  auto image_in = [](const Image& image) {
    return bj::parse(container_body({.handle = "h", .image = {}}, image, "owner", "/boot", {}))
        .at("Image")
        .as_string();
  };
  EXPECT_EQ(image_in({.id = "sha256:1", .platform = {}}), "sha256:1");
  EXPECT_EQ(image_in({.id = "sha256:1", .platform = {}, .name = "small:1"}), "small:1");
}

TEST(ContainerConfig, NetworksThatSomebodyHasMade) {
  for (const char* mode : {"bridge", "host", "none", "default", "slirp4netns", "slirp4netns:port_handler=x"})
    EXPECT_FALSE(names_a_network(mode)) << mode;
  for (const char* name : {"apart", "Bridge", "bridge2"}) EXPECT_TRUE(names_a_network(name)) << name;
}

}  // namespace
}  // namespace osb::docker
