#include "launcher/plan.h"

#include <gtest/gtest.h>

#include "launcher/messages/start.h"

namespace osb::launcher {
namespace {

Plan sample() {
  Plan plan;
  plan.id = "01900000-0000-7000-8000-000000000001";
  plan.limits = {500, 1 << 28, std::nullopt, 1000, std::nullopt, {}};
  plan.disk_bytes = 1 << 24;
  plan.open_files = 64;
  Step root;
  root.kind = Step::Kind::overlay;
  root.target = "/";
  root.name = "root";
  root.lowers = {"/a", "/b"};
  Step view;
  view.kind = Step::Kind::bind;
  view.target = "/opt/tools";
  view.source = "/srv/tools";
  Step volume = view;
  volume.target = "/data";
  volume.source = "/volumes/a";
  volume.access = Step::Access::read_write;
  volume.ids = Step::Ids::owner;
  Step named;
  named.kind = Step::Kind::volume;
  named.target = "/cache";
  named.source = "default/cache/pip";
  plan.shm_bytes = 1 << 26;
  plan.steps = {root, view, volume, named};
  plan.network = {PlanNetwork::Kind::policy, "web"};
  return plan;
}

TEST(Plan, SurvivesTheWire) {
  auto decoded = decode_body<StartRequest>(encode_body(StartRequest{sample()}));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(to_text(decoded->plan), to_text(sample()));
  EXPECT_FALSE(decoded->plan.limits.pids.has_value());
}

TEST(Plan, TextNamesAccessIdsAndNetwork) {
  std::string text = to_text(sample());
  EXPECT_NE(text.find("bind /opt/tools <- /srv/tools\n"), text.npos) << text;
  EXPECT_NE(text.find("bind /data <- /volumes/a read-write ids=owner\n"), text.npos) << text;
  EXPECT_NE(text.find("volume /cache <- default/cache/pip\n"), text.npos) << text;
  EXPECT_NE(text.find(" shm_bytes=67108864"), text.npos) << text;
  EXPECT_NE(text.find(" network=web\n"), text.npos) << text;
}

TEST(Plan, EveryTruncationIsRefused) {
  std::string bytes = encode_body(StartRequest{sample()});
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(decode_body<StartRequest>(std::string_view(bytes).substr(0, n))) << n;
  EXPECT_FALSE(decode_body<StartRequest>(bytes + "x"));
}

TEST(Plan, EveryFlippedBitIsSurvived) {
  std::string bytes = encode_body(StartRequest{sample()});
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string changed = bytes;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << (i % 8)));
    (void)decode_body<StartRequest>(changed);
  }
}

}  // namespace
}  // namespace osb::launcher
