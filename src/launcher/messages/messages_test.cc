#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/messages/all.h"

namespace osb::launcher {
namespace {

constexpr char kId[] = "01900000-0000-7000-8000-000000000001";

// What is written comes out the same, and nothing shorter or longer is taken for it.
template <class Body>
void expect_exact(const Body& body) {
  std::string bytes = encode_body(body);
  auto decoded = decode_body<Body>(bytes);
  ASSERT_TRUE(decoded) << Body::kName;
  EXPECT_EQ(encode_body(*decoded), bytes) << Body::kName;
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(decode_body<Body>(std::string_view(bytes).substr(0, n))) << Body::kName << " cut to " << n;
  EXPECT_FALSE(decode_body<Body>(bytes + "x")) << Body::kName;
}

TEST(Messages, BodiesWithFieldsAreReadExactly) {
  expect_exact(StartAnswer{{1234, 5678}});
  expect_exact(ThawAnswer{true});
  expect_exact(AdoptAnswer{true});
  expect_exact(ListAnswer{{kId, kId}});
  expect_exact(AdoptRequest{kId, {1234, 5678}});
  expect_exact(RecallAnswer{"record", {1, 2}});
  expect_exact(RecordRequest{kId, "record"});
  expect_exact(SocketsRequest{kId, 8});
  expect_exact(OomsAnswer{3});
  expect_exact(Done{});
  expect_exact(HealthRequest{});
  expect_exact(ImagesRequest{});
  expect_exact(CallersRequest{});
  expect_exact(ContainerRequest{kId, std::string(64, 'a'), 1234});
  expect_exact(EngineRequest{});
  expect_exact(ListenersAnswer{kId, true});
  expect_exact(CaptureRequest{kId, kId});
  expect_exact(KeepAnswer{"image", 1, 2, {{"root", "digest"}, {"usr", "other"}}, "record"});
  Step step;
  step.kind = Step::Kind::volume;
  step.target = "/data";
  step.source = "default/a";
  expect_exact(VolumeRequest{step, true, false, 1 << 30});
  expect_exact(VolumeAnswer{true});
  expect_exact(VolumesRequest{"default", "a"});
  expect_exact(VolumesAnswer{{{"a", 1, true, 2, -1}, {"b", 3, false, 0, 1 << 30}}});
  expect_exact(DropVolumeRequest{"default", "a"});
  Plan plan;
  plan.id = kId;
  plan.record = "{}";
  expect_exact(StartRequest{plan});
}

TEST(Messages, AnIdIsTheWholeBody) {
  EXPECT_EQ(encode_body(DestroyRequest{{kId}}), kId);
  EXPECT_EQ(decode_body<DestroyRequest>(kId)->id, kId);
  EXPECT_TRUE(decode_body<DestroyRequest>(""));  // check_id refuses it
}

TEST(Messages, IdsAreShort) {
  std::string most(kMaxIdBytes, 'a'), more(kMaxIdBytes + 1, 'a');
  EXPECT_TRUE(decode_body<StopRequest>(most));
  EXPECT_FALSE(decode_body<StopRequest>(more));
  EXPECT_TRUE(decode_body<SocketsRequest>(encode_body(SocketsRequest{most, 1})));
  EXPECT_FALSE(decode_body<SocketsRequest>(encode_body(SocketsRequest{more, 1})));
  EXPECT_FALSE(decode_body<AdoptRequest>(encode_body(AdoptRequest{more, {1, 1}})));
  EXPECT_FALSE(decode_body<RecordRequest>(encode_body(RecordRequest{more, ""})));
  EXPECT_FALSE(decode_body<ContainerRequest>(encode_body(ContainerRequest{more, most, 2})));
  EXPECT_FALSE(decode_body<ContainerRequest>(encode_body(ContainerRequest{most, more, 2})));
  EXPECT_FALSE(decode_body<ListAnswer>(encode_body(ListAnswer{{more}})));
}

TEST(Messages, AListIsAPage) {
  EXPECT_TRUE(decode_body<ListAnswer>(encode_body(ListAnswer{std::vector<std::string>(kListPage, kId)})));
  EXPECT_FALSE(
      decode_body<ListAnswer>(encode_body(ListAnswer{std::vector<std::string>(kListPage + 1, kId)})));
  EXPECT_FALSE(decode_body<ListAnswer>(std::string("\xff\xff\xff\xff", 4)));
}

TEST(Messages, VolumesAreAPageOfShortNames) {
  VolumesAnswer page;
  page.volumes.resize(kVolumesPage);
  EXPECT_TRUE(decode_body<VolumesAnswer>(encode_body(page)));
  page.volumes.resize(kVolumesPage + 1);
  EXPECT_FALSE(decode_body<VolumesAnswer>(encode_body(page)));
  std::string more(kMostVolumeName + 1, 'a');
  EXPECT_FALSE(decode_body<DropVolumeRequest>(encode_body(DropVolumeRequest{"default", more})));
  EXPECT_FALSE(decode_body<VolumesRequest>(encode_body(VolumesRequest{more, ""})));
}

TEST(Messages, AFlagIsZeroOrOne) {
  EXPECT_FALSE(decode_body<ThawAnswer>(std::string("\0", 1))->was_frozen);
  EXPECT_FALSE(decode_body<ThawAnswer>("\2"));
  EXPECT_FALSE(decode_body<AdoptAnswer>("\xff"));
}

TEST(Messages, AnErrorNamesTheMessage) {
  auto wrong = decode_body<AdoptRequest>("nonsense");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::corrupt);
  EXPECT_THAT(wrong.error().message, testing::StartsWith("adopt: "));
}

TEST(Messages, EveryVerbHasItsRequest) {
  for (int i = 1; i <= static_cast<int>(kLastVerb); ++i) {
    auto verb = static_cast<Verb>(i);
    bool same = with_request_of(verb, [&](auto request) {
      return decltype(request)::kVerb == verb && decltype(request)::kName == to_string(verb);
    });
    EXPECT_TRUE(same) << to_string(verb);
  }
}

TEST(VerbSet, HasWhatItWasGiven) {
  constexpr VerbSet none({}), some({Verb::health, Verb::start}), all = VerbSet::all();
  for (int i = 1; i <= static_cast<int>(kLastVerb); ++i) {
    auto verb = static_cast<Verb>(i);
    EXPECT_FALSE(none.contains(verb));
    EXPECT_EQ(some.contains(verb), verb == Verb::health || verb == Verb::start);
    EXPECT_TRUE(all.contains(verb));
    EXPECT_EQ(all.without(Verb::listeners).contains(verb), verb != Verb::listeners);
  }
}

}  // namespace
}  // namespace osb::launcher
