#include "interpreter/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "io/testing.h"
#include "json/decode.h"

namespace osb::interpreter {
namespace {

using Op = KernelMessage::Op;
using ::testing::ElementsAre;

// Notes what it is told; the test plays the kernel's part.
class FakeKernel final : public Kernel {
 public:
  void listen(std::weak_ptr<KernelListener> listener) override { listener_ = std::move(listener); }
  void run(std::string_view id, std::string_view code) override {
    ids.emplace_back(id);
    codes.emplace_back(code);
  }
  void interrupt() override { ++interrupts; }
  void destroy() override {
    destroyed = true;
    listener_.reset();
  }

  void ready() { listener_.lock()->on_ready(); }
  void output(std::string_view bytes, Stream stream = Stream::out) {
    listener_.lock()->on_output(stream, bytes);
  }
  void say(Op op, std::string id, std::vector<std::pair<std::string, std::string>> data = {}) {
    KernelMessage message;
    message.op = op;
    message.id = std::move(id);
    message.count = static_cast<int64_t>(ids.size());
    message.data = std::move(data);
    message.ename = "E";
    message.evalue = "v";
    message.traceback = {"t"};
    listener_.lock()->on_message(message);
  }
  void end(const std::string& reason) { listener_.lock()->on_end(reason); }

  std::vector<std::string> ids, codes;
  int interrupts = 0;
  bool destroyed = false;

 private:
  std::weak_ptr<KernelListener> listener_;
};

io::Task<> read_all(execd::EventStream& stream, std::string* out) {
  while (true) {
    auto bytes = co_await stream.next();
    if (!bytes || bytes->empty()) co_return;
    *out += *bytes;
  }
}

class ContextTest : public ::testing::Test {
 protected:
  ContextTest() {
    reaper = *execd::Reaper::create(loop.get_executor());
    core.emplace(loop.get_executor(), *reaper);
    context = std::make_shared<Context>(*core, "python", "");
    kernel = std::make_shared<FakeKernel>();
    context->attach(kernel);
  }
  ~ContextTest() override {
    context->destroy();
    context.reset();
    loop.poll();
  }

  // The events of a run that has ended, each as "type" or "type:text"; pings are left out.
  std::vector<std::string> events(Context::Run& run) {
    std::string text;
    io::testing::run(loop, read_all(run.events, &text));
    std::vector<std::string> out;
    for (size_t at = 0, end = 0; (end = text.find("\n\n", at)) != text.npos; at = end + 2) {
      auto event = json::parse(std::string_view(text).substr(at, end - at));
      std::string type(event->at("type").as_string());
      if (type == "ping") continue;
      if (type == "stdout" || type == "stderr") type += ":" + std::string(event->at("text").as_string());
      if (type == "error") type += ":" + std::string(event->at("error").at("ename").as_string());
      if (type == "result") type += ":" + std::string(event->at("results").at("text").as_string());
      out.push_back(type);
    }
    return out;
  }

  boost::asio::io_context loop{1};
  std::unique_ptr<execd::Reaper> reaper;
  std::optional<execd::Core> core;
  std::shared_ptr<Context> context;
  std::shared_ptr<FakeKernel> kernel;
};

TEST_F(ContextTest, ACellFromBeginningToEnd) {
  auto run = context->run("1+1");
  EXPECT_TRUE(kernel->ids.empty());  // not before it is ready
  kernel->ready();
  EXPECT_THAT(kernel->codes, ElementsAre("1+1"));
  kernel->output("a\nb");
  kernel->say(Op::result, kernel->ids[0], {{"text/plain", "2"}});
  kernel->say(Op::done, kernel->ids[0]);
  EXPECT_THAT(events(*run), ElementsAre("init", "stdout:a\n", "stdout:b", "execution_count", "result:2",
                                        "execution_complete"));
}

TEST_F(ContextTest, AnErrorIsTheOnlyEndAndComesLast) {
  kernel->ready();
  auto run = context->run("x");
  kernel->say(Op::error, kernel->ids[0]);
  kernel->output("late", Stream::err);
  kernel->say(Op::done, kernel->ids[0]);
  EXPECT_THAT(events(*run), ElementsAre("init", "stderr:late", "execution_count", "error:E"));
}

TEST_F(ContextTest, CellsTakeTurns) {
  kernel->ready();
  auto first = context->run("a"), second = context->run("b");
  EXPECT_THAT(kernel->codes, ElementsAre("a"));
  kernel->say(Op::done, kernel->ids[0]);
  EXPECT_THAT(kernel->codes, ElementsAre("a", "b"));
  kernel->say(Op::done, kernel->ids[1]);
  EXPECT_THAT(events(*first).back(), "execution_complete");
  EXPECT_THAT(events(*second).back(), "execution_complete");
  EXPECT_TRUE(context->idle());
}

TEST_F(ContextTest, WhatBelongsToAnotherCellIsIgnored) {
  kernel->ready();
  auto first = context->run("a");
  kernel->say(Op::done, "somebody else");
  kernel->say(Op::result, "somebody else", {{"text/plain", "wrong"}});
  EXPECT_FALSE(context->idle());
  kernel->say(Op::done, kernel->ids[0]);
  EXPECT_THAT(events(*first), ElementsAre("init", "execution_count", "execution_complete"));
  kernel->say(Op::result, kernel->ids[0], {{"text/plain", "late"}});  // nothing runs
  kernel->output("late");
}

TEST_F(ContextTest, ADeadKernelEndsWhatRunsAndWhatWaits) {
  kernel->ready();
  auto running = context->run("a"), waiting = context->run("b");
  kernel->output("last words");
  kernel->end("killed");
  EXPECT_THAT(events(*running), ElementsAre("init", "stdout:last words", "error:KernelError"));
  EXPECT_THAT(events(*waiting), ElementsAre("init", "error:KernelError"));
  EXPECT_EQ(context->ended(), "killed");
  EXPECT_THAT(events(*context->run("c")), ElementsAre("init", "error:KernelError"));
}

TEST_F(ContextTest, TooManyWaitingCellsAreRefused) {
  kernel->ready();
  std::vector<std::shared_ptr<Context::Run>> runs;
  for (size_t i = 0; i < Context::kMaxWaiting + 1; ++i) runs.push_back(context->run("x"));
  EXPECT_THAT(events(*context->run("y")), ElementsAre("init", "error:RUNTIME_ERROR"));
}

TEST_F(ContextTest, InterruptReachesTheKernelOnlyWhileACellRuns) {
  kernel->ready();
  context->interrupt();
  EXPECT_EQ(kernel->interrupts, 0);
  auto run = context->run("a");
  context->interrupt();
  EXPECT_EQ(kernel->interrupts, 1);
  kernel->say(Op::done, kernel->ids[0]);
}

TEST_F(ContextTest, InterruptBeforeTheKernelIsReadyEndsTheFirstThatWaits) {
  auto run = context->run("a");
  context->interrupt();
  kernel->ready();
  EXPECT_TRUE(kernel->ids.empty());
  EXPECT_THAT(events(*run), ElementsAre("init", "error:KeyboardInterrupt"));
}

TEST_F(ContextTest, DeletingEndsEverything) {
  kernel->ready();
  auto run = context->run("a");
  context->destroy();
  EXPECT_TRUE(kernel->destroyed);
  EXPECT_THAT(events(*run), ElementsAre("init", "error:KernelError"));
}

// Both of its timers run: that of a kernel that does not get ready, and that of a line without an end.
TEST_F(ContextTest, OneThatIsGoneLeavesNoTimer) {
  auto other = std::make_shared<Context>(*core, "python", "");
  auto silent = std::make_shared<FakeKernel>();
  other->attach(silent);
  kernel->ready();
  auto run = context->run("a");
  kernel->output("half a line");
  loop.poll();
  for (auto* gone : {&context, &other}) (*gone)->destroy();
  std::weak_ptr<Context> left[] = {context, other};
  context.reset();
  other.reset();
  run.reset();
  loop.restart();
  loop.poll();
  EXPECT_TRUE(left[0].expired() && left[1].expired()) << "a timer keeps it";
  EXPECT_TRUE(loop.stopped()) << "a timer is armed";
  context = std::make_shared<Context>(*core, "python", "");  // for the end of the test
}

TEST_F(ContextTest, AClientThatLeavesChangesNothing) {
  kernel->ready();
  auto run = context->run("a");
  run->events.detach();
  kernel->output("unread\n");
  kernel->say(Op::done, kernel->ids[0]);
  EXPECT_TRUE(context->idle());
}

}  // namespace
}  // namespace osb::interpreter
