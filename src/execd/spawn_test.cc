#include "execd/spawn.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

namespace osb::execd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Spawn : public testing::Test {
 protected:
  void SetUp() override {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "a child that runs in our memory is more than ThreadSanitizer can follow";
#endif
  }
};

struct Outcome {
  int code = -1;
  std::string out;
};

Outcome run(SpawnRequest request) {
  int pipe_fds[2];
  EXPECT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  Fd read_end(pipe_fds[0]), write_end(pipe_fds[1]);
  request.out = write_end.get();
  auto pid = spawn(request);
  write_end.reset();
  if (!pid) return {-1, pid.error().message};
  Outcome outcome;
  outcome.out = read_all(read_end.get()).value_or("<unreadable>");
  int status = 0;
  ::waitpid(*pid, &status, 0);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

SpawnRequest shell(std::string script) {
  SpawnRequest request;
  request.argv = {"sh", "-c", std::move(script)};
  request.env = {"PATH=/nonexistent:/usr/bin:/bin"};
  return request;
}

TEST_F(Spawn, finds_the_program_in_the_given_path) {
  EXPECT_EQ(run(shell("echo hello")).out, "hello\n");
  EXPECT_EQ(run(shell("exit 7")).code, 7);
}

TEST_F(Spawn, child_sees_only_what_was_given) {
  EXPECT_EQ(run(shell("echo $PATH; env | grep -vc -e ^PATH= -e ^PWD= -e ^_= -e ^SHLVL=")).out,
            "/nonexistent:/usr/bin:/bin\n0\n");
  Fd leak(::open("/dev/null", O_RDONLY));                                    // not close-on-exec
  EXPECT_EQ(run(shell("ls /proc/self/fd | tr '\\n' ' '")).out, "0 1 2 3 ");  // 3 is ls reading the directory
}

TEST_F(Spawn, signals_are_as_by_default) {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t usr1;
  ::sigemptyset(&usr1);
  ::sigaddset(&usr1, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &usr1, nullptr);
  EXPECT_EQ(run(shell("grep -E '^Sig(Blk|Ign)' /proc/self/status")).out,
            "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  ::sigprocmask(SIG_UNBLOCK, &usr1, nullptr);
}

TEST_F(Spawn, own_group_or_session) {
  EXPECT_EQ(run(shell("set -- $(cat /proc/self/stat); [ $5 = $$ ] && [ $6 != $$ ] && echo yes")).out,
            "yes\n");
  SpawnRequest request = shell("set -- $(cat /proc/self/stat); [ $5 = $$ ] && [ $6 = $$ ] && echo yes");
  request.group = Group::session;
  EXPECT_EQ(run(request).out, "yes\n");
}

TEST_F(Spawn, further_descriptors_may_cross) {
  char path[] = "/tmp/osb-spawn-XXXXXX";
  Fd a(::mkostemp(path, O_CLOEXEC));
  ASSERT_TRUE(write_all(a.get(), "one\n"));
  ::unlink(path);
  Fd high(::fcntl(a.get(), F_DUPFD_CLOEXEC, 9));  // the target below
  ::lseek(a.get(), 0, SEEK_SET);
  SpawnRequest request = shell("cat <&9; [ -e /proc/self/fd/8 ] && echo both");
  request.more = {{a.get(), 9}, {high.get(), 8}};
  EXPECT_EQ(run(request).out, "one\nboth\n");
}

TEST_F(Spawn, failures_name_the_path) {
  auto attempt = [](SpawnRequest request) { return spawn(request).error(); };
  SpawnRequest request = shell("");
  request.argv = {"/nonexistent/x"};
  EXPECT_EQ(attempt(request).path, "/nonexistent/x");
  EXPECT_EQ(attempt(request).code, ENOENT);
  request.argv = {"no-such-program-anywhere"};
  EXPECT_EQ(attempt(request).code, ENOENT);
  EXPECT_EQ(attempt(request).path, "no-such-program-anywhere");
  EXPECT_THAT(attempt(request).message,
              HasSubstr("No such file or directory (it is in no directory of PATH)"));
  request.argv = {"/etc/passwd"};
  EXPECT_EQ(attempt(request).code, EACCES);
  request.argv = {"/tmp"};
  EXPECT_EQ(attempt(request).code, EACCES);
  request.argv = {"sh"};
  request.cwd = "/nonexistent";
  EXPECT_EQ(attempt(request).path, "/nonexistent");
  EXPECT_THAT(attempt(request).message, HasSubstr("No such file"));
  request.argv = {};
  EXPECT_EQ(attempt(request).code, EINVAL);
}

TEST_F(Spawn, scripts_that_cannot_run_say_why) {
  char dir[] = "/tmp/osb-spawn-XXXXXX";
  ASSERT_TRUE(::mkdtemp(dir));
  std::string script = std::string(dir) + "/script";
  SpawnRequest request = shell("");
  request.argv = {"script"};
  request.env = {"PATH=/nonexistent:" + std::string(dir)};
  ASSERT_TRUE(write_file(script, "echo no interpreter line\n", O_CREAT, 0755));
  auto result = spawn(request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ENOEXEC);
  EXPECT_EQ(result.error().path, script);
  ASSERT_TRUE(write_file(script, "#!/nonexistent/interpreter\n", O_TRUNC));
  result = spawn(request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ENOENT);
  EXPECT_EQ(result.error().path, script);
  EXPECT_THAT(result.error().message, HasSubstr("interpreter"));
  ::unlink(script.c_str());
  ::rmdir(dir);
}

TEST_F(Spawn, a_late_child_stops_nobody) {
  // Its first act is a write to the group; here that is a full pipe.
  int pipe_fds[2];
  ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  Fd read_end(pipe_fds[0]), write_end(pipe_fds[1]);
  std::string full(::fcntl(write_end.get(), F_SETPIPE_SZ, 4096), 'x');
  ASSERT_TRUE(write_all(write_end.get(), full));
  place_children(write_end.get(), std::nullopt);
  SpawnRequest request = shell("exit 7");
  auto pid = spawn(request);
  place_children(-1, std::nullopt);
  ASSERT_TRUE(pid) << pid.error().message;
  ASSERT_EQ(::waitpid(*pid, nullptr, WNOHANG), 0) << "it waits for room in the pipe";
  // Others start while it stands on our memory.
  EXPECT_EQ(run(shell("echo other")).out, "other\n");
  EXPECT_EQ(::read(read_end.get(), full.data(), full.size()), static_cast<ssize_t>(full.size()));
  int status = 0;
  ::waitpid(*pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(Spawn, joins_the_group_or_does_not_start) {
  int pipe_fds[2];
  ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  Fd read_end(pipe_fds[0]), write_end(pipe_fds[1]);
  place_children(write_end.get(), std::nullopt);
  EXPECT_EQ(run(shell("echo in")).out, "in\n");
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 1);
  EXPECT_EQ(byte, '0');
  place_children(read_end.get(), std::nullopt);  // cannot be written to
  SpawnRequest request = shell("echo never");
  auto result = spawn(request);
  place_children(-1, std::nullopt);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, EBADF);
  EXPECT_THAT(result.error().message, HasSubstr("join the group"));
}

TEST_F(Spawn, gathers_orphans_when_asked) {
  // Those in between end at once; the substitution waits for the orphan.
  SpawnRequest request = shell(
      "export LEADER=$$; echo $( (sh -c 'for i in $(seq 5000); do [ $(cut -d\" \" -f4 /proc/$$/stat) = "
      "$LEADER ] && echo gathered && exit; done' &) )");
  request.gathers_orphans = true;
  EXPECT_EQ(run(request).out, "gathered\n");
}

TEST(Candidates, path_rules) {
  EXPECT_THAT(executable_candidates("ls", {"PATH=/a::/b"}), ElementsAre("/a/ls", "./ls", "/b/ls"));
  EXPECT_THAT(executable_candidates("./ls", {"PATH=/a"}), ElementsAre("./ls"));
  EXPECT_EQ(executable_candidates("ls", {}).front(), "/usr/local/sbin/ls");
}

}  // namespace
}  // namespace osb::execd
