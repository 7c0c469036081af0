#include "cli/arguments.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "cli/forward.h"
#include "cli/server_role_words.h"

namespace osb::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

template <size_t N>
Command osb(const char* const (&words)[N]) {
  return parse_osb_arguments(N, words);
}

class Arguments : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("OPEN_SANDBOX_DOMAIN");
    ::unsetenv("OPEN_SANDBOX_API_KEY");
  }
};

PrintAndExit stop(const Command& command) {
  const auto* got = std::get_if<PrintAndExit>(&command);
  return got ? *got : PrintAndExit{.out = "parsed", .err = "", .status = -1};
}

TEST_F(Arguments, RunTakesEverything) {
  auto run = std::get<RunOptions>(
      osb({"osb",   "run",  "--env",    "A=1",    "-e",     "B=x y",    "--timeout", "90s",
           "--cpu", "500m", "--memory", "256Mi",  "--keep", "--server", "h:1",       "host",
           "--",    "sh",   "-c",       "exit 3", "--",     "--keep"}));
  EXPECT_EQ(run.image, "host");
  EXPECT_THAT(run.command, ElementsAre("sh", "-c", "exit 3", "--", "--keep"));
  EXPECT_THAT(run.env, ElementsAre(Pair("A", "1"), Pair("B", "x y")));
  EXPECT_EQ(run.timeout, std::chrono::seconds(90));
  EXPECT_EQ(run.cpu, "500m");
  EXPECT_EQ(run.memory, "256Mi");
  EXPECT_TRUE(run.keep);
  EXPECT_EQ(run.connection.server.authority(), "h:1");
}

TEST_F(Arguments, EnvTakesOneWordEach) {
  auto run = std::get<RunOptions>(osb({"osb", "run", "--env", "A=1", "host", "--", "true"}));
  EXPECT_EQ(run.image, "host");
  EXPECT_THAT(run.env, ElementsAre(Pair("A", "1")));
}

TEST_F(Arguments, Repl) {
  auto plain = std::get<ReplOptions>(osb({"osb", "repl"}));
  EXPECT_EQ(plain.image, "host");
  EXPECT_EQ(plain.language, "python");
  auto full = std::get<ReplOptions>(
      osb({"osb", "repl", "--language", "go", "-e", "A=1", "--memory", "1Gi", "registry.example/x:1"}));
  EXPECT_EQ(full.image, "registry.example/x:1");
  EXPECT_EQ(full.language, "go");
  EXPECT_THAT(full.env, ElementsAre(Pair("A", "1")));
  EXPECT_EQ(full.memory, "1Gi");
  EXPECT_EQ(stop(osb({"osb", "repl", "one", "two"})).status, 2);
}

TEST_F(Arguments, RunDefaults) {
  auto run = std::get<RunOptions>(osb({"osb", "run", "host", "--", "true"}));
  EXPECT_EQ(run.connection.server.authority(), "localhost:8080");
  EXPECT_THAT(run.connection.api_key, IsEmpty());
  EXPECT_FALSE(run.timeout);
  EXPECT_FALSE(run.keep);
}

TEST_F(Arguments, FlagBeatsEnvironmentBeatsDefault) {
  ::setenv("OPEN_SANDBOX_DOMAIN", "http://e:2", 1);
  ::setenv("OPEN_SANDBOX_API_KEY", "k", 1);
  auto ls = std::get<VolumeOptions>(osb({"osb", "volumes", "ls"}));
  EXPECT_EQ(ls.connection.server.authority(), "e:2");
  EXPECT_EQ(ls.connection.api_key, "k");
  auto server = [](const Command& command) {
    return std::get<VolumeOptions>(command).connection.server.authority();
  };
  EXPECT_EQ(server(osb({"osb", "volumes", "ls", "-s", "f:3"})), "f:3");
  EXPECT_EQ(server(osb({"osb", "--domain", "g:4", "volumes", "ls"})), "g:4");
}

TEST_F(Arguments, CommandWithoutDashesIsExplained) {
  auto got = stop(osb({"osb", "run", "host", "ls", "-la"}));
  EXPECT_EQ(got.status, 2);
  EXPECT_THAT(got.err, HasSubstr("after --"));
  EXPECT_THAT(stop(osb({"osb", "run", "host"})).err, HasSubstr("no command"));
  EXPECT_THAT(stop(osb({"osb", "run", "host", "--"})).err, HasSubstr("no command"));
}

TEST_F(Arguments, AnUnknownOptionIsNamed) {
  EXPECT_THAT(stop(osb({"osb", "run", "--memroy", "1Gi", "host", "--", "true"})).err,
              HasSubstr("unknown option --memroy\n  see: osb run --help"));
  EXPECT_THAT(stop(osb({"osb", "run", "host", "--nope", "--", "true"})).err,
              HasSubstr("unknown option --nope"));
  EXPECT_THAT(stop(osb({"osb", "run", "--nope", "--", "true"})).err, HasSubstr("unknown option --nope"));
  EXPECT_THAT(stop(osb({"osb", "ls", "-x"})).err, HasSubstr("unknown option -x"));
  EXPECT_THAT(stop(osb({"osb", "--nope"})).err, HasSubstr("unknown option --nope"));
  EXPECT_THAT(stop(osb({"osb", "images", "import", "x", "--nope"})).err, HasSubstr("unknown option --nope"));
}

TEST_F(Arguments, AnUnknownCommandIsNamedAndTheKnownOnesAreListed) {
  auto got = stop(osb({"osb", "xec", "foo"}));
  EXPECT_EQ(got.status, 2);
  EXPECT_THAT(got.err,
              HasSubstr("there is no command \"xec\"; the commands are run, repl, rm, doctor, images, ls, "));
  for (const char* name : {" sandbox,", " config,", " fork,", " exec,", " preview,", " mcp,", " pools,"})
    EXPECT_THAT(got.err, HasSubstr(name));
  EXPECT_THAT(got.err, ::testing::Not(HasSubstr("__complete")));
  EXPECT_THAT(got.err, HasSubstr("osb run IMAGE -- PROGRAM"));
  EXPECT_THAT(stop(osb({"osb", "ls", "foo"})).err, HasSubstr("unexpected word \"foo\""));
}

TEST_F(Arguments, BuildsAndCommits) {
  auto build = osb({"osb", "images", "build", "dir", "-t", "x:1", "--build-arg", "A=1", "--build-arg", "B=2",
                    "--target", "t", "--no-cache"});
  ASSERT_TRUE(std::holds_alternative<BuildImageOptions>(build));
  const auto& what = std::get<BuildImageOptions>(build);
  EXPECT_EQ(what.context, "dir");
  EXPECT_EQ(what.name, "x:1");
  EXPECT_EQ(what.arguments, (std::vector<Variable>{{"A", "1"}, {"B", "2"}}));
  EXPECT_TRUE(what.no_cache);
  EXPECT_EQ(stop(osb({"osb", "images", "build"})).status, 2);
  for (auto commit : {osb({"osb", "commit", "ID", "name", "-w", "/x"}),
                      osb({"osb", "images", "commit", "ID", "name", "-w", "/x"})}) {
    ASSERT_TRUE(std::holds_alternative<CommitImageOptions>(commit));
    EXPECT_EQ(std::get<CommitImageOptions>(commit).id, "ID");
    EXPECT_EQ(std::get<CommitImageOptions>(commit).workdir, "/x");
    EXPECT_FALSE(std::get<CommitImageOptions>(commit).user);
  }
  EXPECT_EQ(stop(osb({"osb", "commit", "ID"})).status, 2);
}

TEST_F(Arguments, ImagesAreNotImportedThroughAServer) {
  auto got = stop(osb({"osb", "images", "import", "x", "-s", "h:1"}));
  EXPECT_EQ(got.status, 2);
  EXPECT_THAT(got.err, HasSubstr("--state-dir"));
}

TEST_F(Arguments, ImagesOfAServer) {
  auto pull = std::get<PullImageOptions>(
      osb({"osb", "images", "pull", "python:3.12", "-s", "h:1", "--username", "me"}));
  EXPECT_EQ(pull.name, "python:3.12");
  EXPECT_EQ(pull.username, "me");
  EXPECT_EQ(pull.connection.server.port, 1);
  auto ls = std::get<LsImagesOptions>(osb({"osb", "images", "ls", "--server", "h:1"}));
  ASSERT_TRUE(ls.connection);
  EXPECT_EQ(ls.connection->server.host, "h");
  EXPECT_TRUE(std::get<RmImagesOptions>(osb({"osb", "images", "rm", "x", "-s", "h:1"})).connection);
  for (auto connection :
       {std::get<LsImagesOptions>(osb({"osb", "--domain", "h:2", "images", "ls"})).connection,
        std::get<RmImagesOptions>(osb({"osb", "--domain", "h:2", "images", "rm", "x"})).connection}) {
    ASSERT_TRUE(connection) << "the server of the other commands";
    EXPECT_EQ(connection->server.port, 2);
    EXPECT_EQ(connection->occasion, Occasion::none);
  }
  EXPECT_TRUE(std::get<LsImagesOptions>(osb({"osb", "images", "ls"})).connection);
  for (const char* option : {"--config", "--state-dir"}) {
    EXPECT_FALSE(std::get<LsImagesOptions>(osb({"osb", "images", "ls", option, "/x"})).connection)
        << "a store of this host, when it is named";
    EXPECT_FALSE(std::get<RmImagesOptions>(osb({"osb", "images", "rm", "x", option, "/x"})).connection);
    EXPECT_EQ(stop(osb({"osb", "images", "ls", "-s", "h:1", option, "/x"})).status, 2) << "not both";
  }
  EXPECT_EQ(std::get<InspectImageOptions>(osb({"osb", "images", "inspect", "x"})).name, "x");
  EXPECT_EQ(std::get<PruneImagesOptions>(osb({"osb", "images", "prune", "-s", "h:7"})).connection.server.port,
            7);
  auto push = std::get<PushImageOptions>(
      osb({"osb", "images", "push", "app", "registry.example/app:1", "-s", "h:1", "-u", "me", "-q"}));
  EXPECT_EQ(push.name, "app");
  EXPECT_EQ(push.target, "registry.example/app:1");
  EXPECT_EQ(push.username, "me");
  EXPECT_TRUE(push.quiet);
  EXPECT_EQ(std::get<PushImageOptions>(osb({"osb", "images", "push", "app"})).target, "");
  EXPECT_EQ(stop(osb({"osb", "images", "push"})).status, 2);
  EXPECT_EQ(stop(osb({"osb", "images", "pull"})).status, 2);
  EXPECT_EQ(stop(osb({"osb", "images", "pull", "a", "-s", "not an address"})).status, 2);
}

TEST_F(Arguments, WrongLinesExitWithTwo) {
  EXPECT_EQ(stop(osb({"osb", "nope"})).status, 2);
  EXPECT_EQ(stop(osb({"osb", "run", "--", "true"})).status, 2);
  EXPECT_EQ(stop(osb({"osb", "run", "--nope", "host", "--", "true"})).status, 2);
  EXPECT_EQ(stop(osb({"osb", "run", "-t", "never", "host", "--", "true"})).status, 2);
  EXPECT_EQ(stop(osb({"osb", "run", "-s", "h:x", "host", "--", "true"})).status, 2);
  EXPECT_EQ(stop(osb({"osb", "ls", "--", "x"})).status, 2);
  EXPECT_EQ(stop(osb({"osb", "rm"})).status, 2);
  EXPECT_EQ(stop(osb({"osb", "rm", "--all", "id"})).status, 2);
}

TEST_F(Arguments, RmTakesIdsOrAll) {
  EXPECT_THAT(std::get<RmOptions>(osb({"osb", "rm", "a", "b"})).ids, ElementsAre("a", "b"));
  EXPECT_TRUE(std::get<RmOptions>(osb({"osb", "rm", "--all"})).all);
}

TEST_F(Arguments, HelpAndVersionGoToStandardOutput) {
  EXPECT_THAT(stop(osb({"osb", "--version"})).out, HasSubstr("osb, version "));
  EXPECT_THAT(stop(osb({"osb"})).out, HasSubstr("run"));
  auto help = stop(osb({"osb", "run", "--help"}));
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("IMAGE -- COMMAND"));
}

TEST_F(Arguments, Doctor) {
  auto doctor = std::get<DoctorOptions>(osb({"osb", "doctor", "--attack", "--state-dir", "/x"}));
  EXPECT_TRUE(doctor.attack);
  EXPECT_EQ(doctor.state_dir, "/x");
}

TEST(OwnWords, NeedNoTree) {
  auto role = parse_server_role({"server", "--state-dir=/s", "--host-image=v1", "--rootless"});
  ASSERT_TRUE(role);
  EXPECT_EQ(role->state_dir, "/s");
  EXPECT_TRUE(role->rootless);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"server"},
                                                {"server", "start", "--detach"},
                                                {"server", "--state-dir=/s"},
                                                {"run", "--state-dir=/s", "--host-image=v"}})
    EXPECT_FALSE(parse_server_role(words)) << words.size();
  EXPECT_EQ(parse_occasion({"occasion", "--lock=7"})->lock, 7);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"occasion"}, {"occasion", "--lock=x"}, {"occasion", "--lock=7", "x"}})
    EXPECT_FALSE(parse_occasion(words)) << words.size();
}

TEST_F(Arguments, ServerRoleIsTheLaunchersBusiness) {
  EXPECT_EQ(
      std::get<ServerRoleOptions>(osb({"osb", "server", "--state-dir=/s", "--host-image=v1"})).host_image,
      "v1");
  EXPECT_EQ(stop(osb({"osb", "server", "--host-image=v1"})).status, 2);
  EXPECT_TRUE(std::holds_alternative<Action>(osb({"osb", "server", "status"})));
  EXPECT_THAT(stop(osb({"osb", "--help"})).out, ::testing::Not(HasSubstr("internal")));
}

template <size_t N>
Command server(const char* const (&words)[N]) {
  return parse_server_arguments(N, words);
}

TEST(ServerArguments, Run) {
  EXPECT_EQ(std::get<ServeOptions>(server({"opensandbox-server"})).config, "");
  EXPECT_EQ(std::get<ServeOptions>(server({"opensandbox-server", "--config", "/f", "--reload"})).config,
            "/f");
  EXPECT_EQ(stop(server({"opensandbox-server", "--port", "1"})).status, 2);
  EXPECT_EQ(stop(server({"opensandbox-server", "--version"})).out,
            "opensandbox-server, version " OSB_VERSION "\n");
}

TEST(ServerArguments, WhatOnlyOtherServersDoIsRefusedInWords) {
  auto said = stop(server(
      {"opensandbox-server", "migrate-snapshots", "--from", "/x", "--to", "postgresql://h/d", "--dry-run"}));
  EXPECT_EQ(said.status, 2);
  EXPECT_THAT(said.err, HasSubstr("this build keeps its state in SQLite only; nothing was done"));
  EXPECT_THAT(stop(server({"opensandbox-server", "--help"})).out, ::testing::Not(HasSubstr("migrate")));
}

TEST(ServerArguments, InitConfig) {
  auto plain = std::get<InitConfigOptions>(server({"opensandbox-server", "init-config"}));
  EXPECT_EQ(plain.path + plain.example, "");
  auto full = std::get<InitConfigOptions>(
      server({"opensandbox-server", "init-config", "/f", "--example", "k8s-zh", "--force"}));
  EXPECT_EQ(full.path, "/f");
  EXPECT_EQ(full.example, "k8s-zh");
  EXPECT_TRUE(full.force);
  EXPECT_EQ(stop(server({"opensandbox-server", "init-config", "--example", "nope"})).status, 2);
}

TEST_F(Arguments, ImportTakesEverything) {
  auto import = std::get<ImportImageOptions>(osb({"osb",
                                                  "images",
                                                  "import",
                                                  "x.tar",
                                                  "--name",
                                                  "a",
                                                  "-n",
                                                  "b",
                                                  "--env",
                                                  "A=1",
                                                  "-u",
                                                  "app",
                                                  "-w",
                                                  "/w",
                                                  "--entrypoint",
                                                  "sh",
                                                  "--entrypoint",
                                                  "-c",
                                                  "--label",
                                                  "k=v",
                                                  "--max-size",
                                                  "2Gi",
                                                  "--max-entries",
                                                  "5",
                                                  "--state-dir",
                                                  "/s",
                                                  "-q"}));
  EXPECT_EQ(import.source, "x.tar");
  EXPECT_THAT(import.names, ElementsAre("a", "b"));
  EXPECT_THAT(import.env, ElementsAre(Pair("A", "1")));
  EXPECT_THAT(import.labels, ElementsAre(Pair("k", "v")));
  EXPECT_THAT(import.entrypoint, ElementsAre("sh", "-c"));
  EXPECT_EQ(import.user, "app");
  EXPECT_EQ(import.workdir, "/w");
  EXPECT_EQ(import.max_bytes, 2ull << 30);
  EXPECT_EQ(import.max_entries, 5u);
  EXPECT_EQ(import.store.state_dir, "/s");
  EXPECT_TRUE(import.quiet);
}

TEST_F(Arguments, ImagesSaysWhatIsWrong) {
  for (const auto& words : {std::vector<const char*>{"osb", "images"},
                            {"osb", "images", "import"},
                            {"osb", "images", "rm"},
                            {"osb", "images", "import", "x", "--max-size", "big"},
                            {"osb", "images", "import", "x", "-w", "rel"},
                            {"osb", "images", "import", "x", "--env", "=1"},
                            {"osb", "images", "import", "x", "y"}}) {
    auto stopped = stop(parse_osb_arguments(static_cast<int>(words.size()), words.data()));
    EXPECT_EQ(stopped.status, 2) << words.back();
    EXPECT_THAT(stopped.err, HasSubstr("see: osb images"));
  }
  auto rm = std::get<RmImagesOptions>(osb({"osb", "images", "rm", "a", "b", "--force"}));
  EXPECT_THAT(rm.names, ElementsAre("a", "b"));
  EXPECT_TRUE(rm.force);
  EXPECT_TRUE(std::get<LsImagesOptions>(osb({"osb", "images", "ls", "--json"})).json);
}

TEST_F(Arguments, RunPassesThingsOn) {
  auto run = std::get<RunOptions>(osb({"osb", "run", "-it", "--user", "7:8", "--pids", "9", "--disk", "1Gi",
                                       "--name", "n", "host", "--", "-it"}));
  EXPECT_TRUE(run.input && run.terminal);
  EXPECT_EQ(run.user, (std::pair<uint32_t, uint32_t>(7, 8)));
  EXPECT_EQ(run.pids + run.disk + run.name, "91Gin");
  EXPECT_THAT(run.command, ElementsAre("-it")) << "what follows -- is the command's";
  auto detached = std::get<RunOptions>(osb({"osb", "run", "-d", "--ttl", "90s", "host", "--", "x"}));
  EXPECT_EQ(detached.ttl, std::chrono::seconds(90));
  for (auto words : {std::pair{"-d", "-i"},
                     {"-d", "--keep"},
                     {"-d", "-t5s"},
                     {"-u", "root"},
                     {"-u", "1:"},
                     {"--ttl", "5m"}})
    EXPECT_EQ(stop(osb({"osb", "run", words.first, words.second, "host", "--", "x"})).status, 2)
        << words.first;
}

TEST_F(Arguments, Snapshots) {
  using What = SnapshotOptions::What;
  EXPECT_TRUE(std::holds_alternative<Action>(osb({"osb", "snapshot", "create", "a", "-n", "n"})));
  EXPECT_EQ(std::get<SnapshotOptions>(osb({"osb", "snapshot", "ls"})).what, What::list);
  EXPECT_EQ(std::get<SnapshotOptions>(osb({"osb", "snapshot", "rm", "a", "b"})).ids.size(), 2u);
  auto fork = std::get<SnapshotOptions>(osb({"osb", "fork", "a", "-n", "3"}));
  EXPECT_EQ(fork.what, What::fork);
  EXPECT_EQ(fork.count, 3);
  auto back = std::get<SnapshotOptions>(osb({"osb", "rollback", "a", "s"}));
  EXPECT_EQ(back.what, What::rollback);
  EXPECT_EQ(back.sandbox + back.ids.at(0), "as");
  EXPECT_EQ(std::get<RunOptions>(osb({"osb", "run", "--snapshot", "s", "--", "true"})).image,
            "opensandbox-snapshots:s");
  EXPECT_EQ(stop(osb({"osb", "run", "--snapshot", "s", "host", "--", "true"})).status, 2);
  EXPECT_EQ(stop(osb({"osb", "run", "--", "true"})).status, 2);
  EXPECT_TRUE(std::holds_alternative<Action>(osb({"osb", "snapshot"}))) << "it prints its help";
  EXPECT_EQ(std::get<SnapshotOptions>(osb({"osb", "diff", "a"})).sandbox, "a");
}

TEST_F(Arguments, Volumes) {
  auto run = std::get<RunOptions>(
      osb({"osb", "run", "-v", "a:/b", "--volume", "/c:/d:ro", "--shm-size", "1Gi", "host", "--", "true"}));
  ASSERT_EQ(run.volumes.size(), 2u);
  EXPECT_EQ(run.volumes[0].source + run.volumes[0].path, "a/b");
  EXPECT_TRUE(run.volumes[1].read_only);
  EXPECT_EQ(run.shm, "1Gi");
  EXPECT_EQ(stop(osb({"osb", "run", "-v", "a", "host", "--", "true"})).status, 2);
  EXPECT_TRUE(std::get<VolumeOptions>(osb({"osb", "volumes", "ls", "--json"})).json);
  EXPECT_THAT(std::get<VolumeOptions>(osb({"osb", "volumes", "rm", "a", "b"})).names, ElementsAre("a", "b"));
  auto pool =
      std::get<PoolOptions>(osb({"osb", "pools", "create", "p", "--image", "x", "--buffer-min", "60"}));
  EXPECT_EQ(pool.what, PoolOptions::What::create);
  EXPECT_THAT(pool.names, ElementsAre("p"));
  // One number is enough: the others follow.
  EXPECT_EQ(pool.buffer_max, 60);
  EXPECT_EQ(pool.pool_max, 60);
  EXPECT_EQ(std::get<PoolOptions>(osb({"osb", "pools", "create", "p", "-"})).file, "-");
  EXPECT_THAT(stop(osb({"osb", "pools", "create", "p"})).err, HasSubstr("--image"));
  EXPECT_THAT(stop(osb({"osb", "pools", "create", "p", "f", "--image", "x"})).err, HasSubstr("not both"));
  EXPECT_EQ(stop(osb({"osb", "volumes"})).status, 2);
  EXPECT_EQ(stop(osb({"osb", "volumes", "rm"})).status, 2);
}

TEST(Forwarding, NamesAPortHereAndThere) {
  auto same = parse_forwarding("abc:5432"), other = parse_forwarding("15432:abc:5432"),
       any = parse_forwarding("0:abc:5432");
  ASSERT_TRUE(same && other && any);
  EXPECT_EQ(same->local, 5432);
  EXPECT_EQ(other->local, 15432);
  EXPECT_EQ(other->sandbox, "abc");
  EXPECT_EQ(other->port, 5432);
  EXPECT_EQ(any->local, 0);
  for (const char* wrong :
       {"", "5432", ":5432", "abc:", "abc:0", "abc:65536", "x:abc:80", "1:2:3:4", "-1:abc:80"})
    EXPECT_FALSE(parse_forwarding(wrong)) << wrong;
}

}  // namespace
}  // namespace osb::cli
