#include "launcher/loop_fixture.h"

namespace osb::launcher {
namespace {

// Requests

TEST_F(LoopTest, VerbsAreAnswered) {
  open();
  EXPECT_EQ(exchange(1, HealthRequest{}).error, 0);
  EXPECT_EQ(decode_body<OomsAnswer>(exchange(2, OomsRequest{{kId}}).body)->count, 3);
  EXPECT_EQ(exchange(3, AdoptRequest{kId, {1234, 5678}}).descriptors.size(), 1u);
  EXPECT_EQ(exchange(4, SocketsRequest{kId, 16}).descriptors.size(), 16u);
  EXPECT_EQ(decode_body<RecallAnswer>(exchange(5, RecallRequest{{kId}}).body)->record, "record");
  EXPECT_TRUE(decode_body<ThawAnswer>(exchange(6, ThawRequest{{kId}}).body)->was_frozen);
  EXPECT_EQ(exchange(7, RecordRequest{kId, "{}"}).error, 0);
  EXPECT_EQ(exchange(8, FreezeRequest{{kId}}).error, 0);
  EXPECT_EQ(exchange(9, DestroyRequest{{kId}}).error, 0);
  EXPECT_TRUE(decode_body<ListAnswer>(exchange(10, ListRequest{}).body)->ids.empty());
  EXPECT_EQ(exchange(11, DiffRequest{{kId}}).descriptors.size(), 1u);
}

TEST_F(LoopTest, AVolumeIsAnsweredWhenItIsThere) {
  open();
  VolumeRequest request{.step = {}, .create = true};
  request.step.kind = Step::Kind::volume;
  request.step.target = "/data";
  request.step.source = "default/a";
  auto made = [](const Answer& answer) { return decode_body<VolumeAnswer>(answer.body)->made; };
  EXPECT_TRUE(made(exchange(1, request)));
  EXPECT_FALSE(made(exchange(2, request)));
  table_.volume_exists = true;
  request.step.source = "default/b";
  EXPECT_FALSE(made(exchange(3, request))) << "another was faster, and it is there";
  EXPECT_EQ(exchange(4, DropVolumeRequest{"default", "b"}).error, 0);
  EXPECT_EQ(exchange(5, DropVolumeRequest{"default", "b"}).code, static_cast<uint32_t>(Code::not_found));
  for (const char* name : {"", "..", "a/b", "A"})
    EXPECT_THAT(exchange(6, DropVolumeRequest{"default", name}).message, HasSubstr("refused")) << name;
  EXPECT_THAT(exchange(7, VolumesRequest{"../x", ""}).message, HasSubstr("refused"));
  request.step.source = "../db";
  EXPECT_THAT(exchange(8, request).message, HasSubstr("refused"));
  request.step.kind = Step::Kind::bind;
  request.step.source = "/etc";
  EXPECT_THAT(exchange(9, request).message, HasSubstr("refused")) << "a bind that is no volume";
}

constexpr char kSnapshot[] = "02900000-0000-4000-8000-000000000002";

TEST_F(LoopTest, ACaptureFreezesAndLetsGoOn) {
  table_.is_paused = false;
  open();
  EXPECT_EQ(exchange(1, CaptureRequest{kId, kSnapshot}).error, 0);
  EXPECT_EQ(table_.frozen_calls, (std::vector<bool>{true, false}));
  EXPECT_EQ(decode_body<ListAnswer>(exchange(2, SnapshotsRequest{}).body)->ids,
            std::vector<std::string>{kSnapshot});
  EXPECT_EQ(exchange(3, PlaceRequest{{kSnapshot}}).error, 0);
  EXPECT_TRUE(table_.kept.empty()) << "it only has its place";
  Answer kept = exchange(3, KeepRequest{{kSnapshot}});
  ASSERT_EQ(kept.error, 0) << kept.message;
  EXPECT_TRUE(table_.kept.contains(kSnapshot)) << "what was placed can be kept";
  auto body = decode_body<KeepAnswer>(kept.body);
  ASSERT_TRUE(body);
  EXPECT_EQ(body->record, "record");
  EXPECT_EQ(body->layers.at(0).overlay, "root");
  EXPECT_EQ(exchange(4, DropRequest{{kSnapshot}}).error, 0);
  EXPECT_NE(exchange(5, KeepRequest{{kSnapshot}}).error, 0);
}

TEST_F(LoopTest, ACaptureOfWhatIsPausedLeavesItSo) {
  open();
  EXPECT_EQ(exchange(1, CaptureRequest{kId, kSnapshot}).error, 0);
  EXPECT_EQ(table_.frozen_calls, std::vector<bool>{true});
}

TEST_F(LoopTest, ACaptureThatFailsLeavesNothingAndLetsGoOn) {
  table_.is_paused = false;
  table_.capture_work = [] { return Result<void>(fail_errno("copy", ENOSPC)); };
  open();
  Answer failed = exchange(1, CaptureRequest{kId, kSnapshot});
  EXPECT_EQ(failed.error, ENOSPC);
  EXPECT_THAT(failed.message, HasSubstr("copy"));
  EXPECT_EQ(table_.frozen_calls, (std::vector<bool>{true, false}));
  EXPECT_TRUE(table_.snapshots.empty());
}

TEST_F(LoopTest, WhoeverThawsASandboxEndsItsCapture) {
  table_.is_paused = false;
  table_.capture_work = [] {
    ::pause();
    return Result<void>();
  };
  open();
  ask(now(), 1, CaptureRequest{kId, kSnapshot});
  ASSERT_TRUE(until([&] { return !table_.snapshots.empty(); }));
  ask(now(), 2, CaptureRequest{kId, kSnapshot});
  EXPECT_EQ(hear(now()).tag, 2u) << "there is one at a time";
  ask(now(), 3, ThawRequest{{kId}});
  EXPECT_EQ(hear(now()).tag, 3u);
  Answer ended = hear(now());
  EXPECT_EQ(ended.tag, 1u);
  EXPECT_EQ(static_cast<Code>(ended.code), Code::cancelled);
  EXPECT_TRUE(table_.snapshots.empty());
}

TEST_F(LoopTest, AStartIsAnsweredWhenItsProcessRuns) {
  open();
  ask(now(), 1, start_request());
  ASSERT_TRUE(until([&] { return table_.reports.contains(kId); }));
  EXPECT_EQ(exchange(2, HealthRequest{}).error, 0) << "others do not wait for it";
  table_.reports.clear();
  Answer started = hear(now());
  EXPECT_EQ(started.tag, 1u);
  EXPECT_EQ(started.descriptors.size(), 1u);
  EXPECT_EQ(decode_body<StartAnswer>(started.body)->first_process.pid, 1234);
}

TEST_F(LoopTest, AStartThatFailedIsAnsweredAndCleanedUp) {
  open();
  ask(now(), 1, start_request());
  ASSERT_TRUE(until([&] { return table_.reports.contains(kId); }));
  ASSERT_TRUE(write_all(table_.reports[kId].get(), "x"));
  Answer failed = hear(now());
  EXPECT_NE(failed.error, 0);
  EXPECT_EQ(failed.message, "step 3 failed");
  ASSERT_TRUE(until([&] { return table_.removed.size() == 1; }));
  EXPECT_THAT(table_.killed, testing::ElementsAre(kId));
  nudge();
  ASSERT_TRUE(loop_->turn());
  EXPECT_FALSE(heard(now())) << "nobody asked for the end";
}

TEST_F(LoopTest, AnEndWaitsUntilTheKernelHasLetGo) {
  open();
  table_.busy_for = 5;
  EXPECT_EQ(exchange(1, DestroyRequest{{kId}}).error, 0);
  EXPECT_LE(table_.busy_for, 0);
  EXPECT_THAT(table_.removed, testing::ElementsAre(kId));
}

TEST_F(LoopTest, WhatTheKernelHoldsIsDroppedLater) {
  open();
  table_.held_for = 1;
  EXPECT_EQ(exchange(1, DestroyRequest{{kId}}).error, 0);
  EXPECT_TRUE(until([&] { return table_.held_for < 0; })) << "nobody comes back for it";
}

TEST_F(LoopTest, WhatCouldNotBeRemovedIsTriedAgain) {
  open();
  table_.stubborn_for = 2;
  EXPECT_EQ(exchange(1, DestroyRequest{{kId}}).error, 0);
  EXPECT_TRUE(until([&] { return table_.stubborn_for < 0; })) << "it stays until something else is removed";
}

TEST_F(LoopTest, AConnectionToTheEngineIsHandedOver) {
  open();
  EXPECT_EQ(exchange(1, EngineRequest{}).descriptors.size(), 1u);
  table_.refuses = "connect /run/engine.sock: Connection refused";
  Answer refused = exchange(2, EngineRequest{});
  EXPECT_NE(refused.error, 0);
  EXPECT_EQ(refused.message, table_.refuses);
  EXPECT_TRUE(refused.descriptors.empty());
}

TEST_F(LoopTest, WhatIsWrongInARequestIsAnsweredAndNothingEnds) {
  open();
  auto raw = [&](Verb verb, std::string body) {
    EXPECT_TRUE(send_message(now().channel.get(), encode(Request{9, verb, std::move(body)}), {}));
    return hear(now());
  };
  std::string whole = encode_body(AdoptRequest{kId, {2, 2}});
  EXPECT_THAT(raw(Verb::adopt, whole.substr(0, whole.size() - 1)).message, HasSubstr("adopt"));
  EXPECT_THAT(raw(Verb::adopt, whole + "x").message, HasSubstr("adopt"));
  EXPECT_THAT(raw(Verb::start, "half a plan").message, HasSubstr("start"));
  EXPECT_THAT(raw(Verb::health, "something").message, HasSubstr("health"));
  EXPECT_THAT(raw(Verb::engine, "/run/other.sock").message, HasSubstr("engine"));
  for (const std::string& id :
       {std::string(), std::string(".."), std::string("../x"), std::string(100'000, 'a')}) {
    for (Verb verb : {Verb::stop, Verb::destroy, Verb::freeze, Verb::thaw, Verb::ooms, Verb::recall,
                      Verb::listeners, Verb::keep, Verb::place, Verb::drop, Verb::diff})
      EXPECT_NE(raw(verb, id).error, 0) << to_string(verb);
    EXPECT_NE(raw(Verb::record, encode_body(RecordRequest{id, ""})).error, 0);
  }
  for (uint32_t count : {0u, 17u, 0xffff'ffffu})
    EXPECT_NE(raw(Verb::sockets, encode_body(SocketsRequest{kId, count})).error, 0) << count;
  EXPECT_TRUE(table_.killed.empty());
  EXPECT_TRUE(table_.frozen_calls.empty());
  EXPECT_EQ(lives().size(), 1u);
}

TEST_F(LoopTest, AFreezeThatIsNotCompleteWaits) {
  open();
  table_.freezes = false;
  ask(now(), 1, FreezeRequest{{kId}});
  ask(now(), 2, HealthRequest{});
  EXPECT_EQ(hear(now()).tag, 2u);
  table_.freezes = true;
  EXPECT_EQ(hear(now()).tag, 1u);
}

// Peers

TEST_F(LoopTest, GarbageEndsThePeerAndAFreshOneIsServed) {
  open();
  std::string good = encode(Request{1, Verb::list, ""});
  for (const std::string& bytes : {std::string("\0", 1), good.substr(0, good.size() - 1),
                                   std::string(1000, '\xff'), "\1" + good.substr(1)}) {
    size_t before = lives().size();
    ASSERT_TRUE(send_message(now().channel.get(), bytes, {}));
    ASSERT_TRUE(until([&] { return lives().size() == before + 1; }));
    EXPECT_EQ(exchange(1, HealthRequest{}).error, 0);
  }
}

TEST_F(LoopTest, APeerThatDisappearsMidRequestLeavesNothingUndone) {
  open();
  ask(now(), 1, start_request());
  ASSERT_TRUE(until([&] { return table_.reports.contains(kId); }));
  ::kill(now().pid, SIGKILL);
  ASSERT_TRUE(until([&] { return lives().size() == 2; }));
  table_.reports.clear();
  ASSERT_TRUE(until([&] { return table_.sandboxes.contains(kId); }));
  // The next one is not told of what it did not ask for, and finds the sandbox.
  EXPECT_THAT(decode_body<ListAnswer>(exchange(1, ListRequest{}).body)->ids, testing::ElementsAre(kId));
}

TEST_F(LoopTest, AFreezeOfAPeerThatIsGoneStays) {
  open();
  table_.freezes = false;
  ask(now(), 1, FreezeRequest{{kId}});
  ASSERT_TRUE(until([&] { return table_.frozen_calls.size() == 1; }));
  ::kill(now().pid, SIGKILL);
  ASSERT_TRUE(until([&] { return lives().size() == 2; }));
  EXPECT_EQ(exchange(2, HealthRequest{}).error, 0);
  EXPECT_THAT(table_.frozen_calls, testing::ElementsAre(true)) << "thawed behind the back of the next server";
}

TEST_F(LoopTest, APeerThatClosesItsChannelIsNotServedAndNotRestarted) {
  open();
  now().channel.reset();
  for (int i = 0; i < 10; ++i) {
    nudge();
    ASSERT_TRUE(loop_->turn());
  }
  EXPECT_EQ(lives().size(), 1u);
  ::kill(now().pid, SIGKILL);
  ASSERT_TRUE(until([&] { return lives().size() == 2; }));
  EXPECT_EQ(exchange(1, HealthRequest{}).error, 0);
}

TEST_F(LoopTest, MoreRequestsThanAnswersFitAreAllAnsweredInTheEnd) {
  open();
  uint64_t sent = 0, answered = 0;
  // Until neither side takes more.
  for (int idle = 0; idle < 3;) {
    bool took = send_message(now().channel.get(), encode(Request{sent + 1, Verb::ooms, kId}), {}).has_value();
    sent += took;
    idle = took ? 0 : idle + 1;
    nudge();
    ASSERT_TRUE(loop_->turn());
    ASSERT_LT(sent, 100'000u);
  }
  EXPECT_GT(sent, 10u);
  while (answered < sent) EXPECT_EQ(hear(now()).tag, ++answered);
  EXPECT_EQ(lives().size(), 1u);
}

TEST_F(LoopTest, EachPeerHasItsOwnVerbsAndAnswers) {
  open({spec("server"), spec("ingress", {Verb::health})});
  ask(now("ingress"), 5, start_request());
  Answer refused = hear(now("ingress"));
  EXPECT_EQ(refused.tag, 5u);
  EXPECT_EQ(static_cast<Code>(refused.code), Code::permission_denied);
  EXPECT_THAT(refused.message, HasSubstr("the ingress may not ask for start"));
  EXPECT_TRUE(table_.reports.empty());
  ask(now("ingress"), 6, HealthRequest{});
  EXPECT_EQ(hear(now("ingress")).error, 0);
  EXPECT_EQ(exchange(7, ListRequest{}).error, 0);
  EXPECT_FALSE(heard(now("ingress"))) << "an answer of somebody else";
}

TEST_F(LoopTest, WhoeverListensHearsOfASandboxThatSpeaks) {
  open();
  ask(now(), 1, CallersRequest{});
  EXPECT_EQ(exchange(2, HealthRequest{}).error, 0) << "others do not wait meanwhile";
  ::eventfd_write(table_.calls.get(), 2);
  Answer first = hear(now());
  EXPECT_EQ(first.tag, 1u);
  EXPECT_EQ(first.descriptors.size(), 3u);
  EXPECT_EQ(decode_body<ListenersAnswer>(first.body)->id, kId);
  EXPECT_EQ(exchange(3, CallersRequest{}).descriptors.size(), 3u) << "one that spoke before it was asked for";
}

TEST_F(LoopTest, WhoSpeaksWhileNobodyListensIsHeardByTheNextOne) {
  open();
  ask(now(), 1, CallersRequest{});
  EXPECT_EQ(exchange(2, HealthRequest{}).error, 0);
  ::kill(now().pid, SIGKILL);
  ASSERT_TRUE(until([&] { return lives().size() == 2; }));
  EXPECT_EQ(table_.silences, 1) << "its sockets ended with it";
  ::eventfd_write(table_.calls.get(), 1);
  EXPECT_EQ(exchange(3, HealthRequest{}).error, 0);
  EXPECT_EQ(exchange(4, CallersRequest{}).descriptors.size(), 3u);
}

}  // namespace
}  // namespace osb::launcher
