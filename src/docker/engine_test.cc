#include "docker/engine.h"

#include <gmock/gmock.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "docker/image_pulls.h"
#include "http/server.h"
#include "io/testing.h"

namespace osb::docker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// An engine that gives canned answers over a real socket.
class FakeEngine {
 public:
  struct Canned {
    int status = 200;
    std::string body;
  };

  explicit FakeEngine(const io::Executor& executor)
      : server_(executor, [this](http::Request& q, http::ResponseWriter& r) { return serve(q, r); }),
        tasks_(executor) {
    char name[] = "/tmp/osb-engine-XXXXXX";
    directory_ = ::mkdtemp(name);
    path = directory_ + "/docker.sock";
    answers["/version"] = {200, R"({"Version":"20.10","ApiVersion":"1.41","MinAPIVersion":"1.12"})"};
    auto listener = io::listen_unix(path, 8);
    EXPECT_TRUE(listener) << listener.error().message;
    tasks_.spawn(server_.serve(std::move(*listener)));
  }
  ~FakeEngine() {
    ::unlink(path.c_str());
    ::rmdir(directory_.c_str());
  }
  Task<> close() {
    co_await server_.close(std::chrono::seconds(0));
    co_await tasks_.close();
  }

  std::map<std::string, Canned> answers;  // by path without version and query
  std::vector<std::string> asked;         // methods and targets
  http::Headers last_headers;
  std::string path;

 private:
  Task<> serve(http::Request& request, http::ResponseWriter& response) {
    asked.push_back(request.head.method + " " + request.head.target);
    last_headers = request.head.headers;
    (void)co_await http::read_all(*request.body, 1 << 20);
    std::string name(request.head.path());
    if (name.starts_with("/v1.")) name.erase(0, name.find('/', 1));
    auto found = answers.find(name);
    Canned answer = found == answers.end() ? Canned{404, R"({"message":"no such thing"})"} : found->second;
    (void)co_await response.json(answer.status, answer.body);
  }

  std::string directory_;
  http::Server server_;
  io::TaskGroup tasks_;
};

Task<> programs_that_cannot_be_run() {
  FakeEngine fake(co_await io::asio::this_coro::executor);
  {
    Engine engine({.socket = fake.path});
    auto run = [&] { return engine.exec("c", {"/execd", "--join"}); };
    EXPECT_EQ((co_await run()).error().code, Code::not_found);
    fake.answers["/containers/c/exec"] = {409, R"({"message":"Container c is paused"})"};
    EXPECT_EQ((co_await run()).error().code, Code::wrong_state);
    fake.answers["/containers/c/exec"] = {201, R"({"Id":"e"})"};
    EXPECT_EQ((co_await run()).error().code, Code::not_found);
    EXPECT_EQ(fake.asked.back(), "POST /v1.41/exec/e/start");
    EXPECT_EQ(fake.last_headers.get("Upgrade"), "tcp");
    fake.answers["/exec/e/start"] = {200, "{}"};
    EXPECT_EQ((co_await run()).error().code, Code::unsupported) << "what follows is no stream";
    fake.answers["/exec/e/start"] = {503, R"({"message":"not now"})"};
    EXPECT_EQ((co_await run()).error().code, Code::unavailable);
    fake.answers["/containers/c/archive"] = {200, ""};
    EXPECT_TRUE(co_await engine.unpack("c", "/a b", "tar"));
    EXPECT_EQ(fake.asked.back(), "PUT /v1.41/containers/c/archive?path=%2Fa%20b");
    EXPECT_EQ(fake.last_headers.get("Content-Type"), "application/x-tar");
  }
  co_await fake.close();
}
TEST(Engine, ProgramsThatCannotBeRun) { io::testing::run(programs_that_cannot_be_run()); }

Task<> speaks_its_version() {
  FakeEngine fake(co_await io::asio::this_coro::executor);
  fake.answers["/_ping"] = {200, "OK"};
  {
    Engine engine({.socket = fake.path});
    EXPECT_TRUE(co_await engine.ping());
    EXPECT_TRUE(co_await engine.ping());
    EXPECT_THAT(fake.asked, ElementsAre("GET /version", "GET /v1.41/_ping", "GET /v1.41/_ping"));
  }
  co_await fake.close();
}
TEST(Engine, SpeaksItsVersion) { io::testing::run(speaks_its_version()); }

TEST(Engine, ChoosesAVersion) {
  EXPECT_EQ(*choose_version({{1, 41}, {1, 12}, ""}), (ApiVersion{1, 41}));
  EXPECT_EQ(*choose_version({{1, 99}, {1, 44}, ""}), (ApiVersion{1, 47}));
  EXPECT_THAT(choose_version({{1, 40}, {1, 12}, ""}).error().message, HasSubstr("too old"));
  EXPECT_THAT(choose_version({{1, 99}, {1, 90}, ""}).error().message, HasSubstr("too new"));
}

TEST(Engine, KnowsPodman) {
  constexpr char kParts[] =
      R"({"Version":"4.3.1","ApiVersion":"1.41","MinAPIVersion":"1.24","Components":[{"Name":"%"}]})";
  std::string text = kParts;
  EXPECT_FALSE(parse_version(text)->podman);
  EXPECT_TRUE(parse_version(text.replace(text.find('%'), 1, "Podman Engine"))->podman);
  EXPECT_FALSE(parse_version(R"({"ApiVersion":"1.41","Components":[1,{"Name":2},{}]})")->podman);
}

Task<> a_port_with_tls() {
  FakeEngine fake(co_await io::asio::this_coro::executor);
  fake.answers["/version"] = {400, "Client sent an HTTP request to an HTTPS server.\n"};
  {
    Engine engine({.socket = fake.path});
    auto answer = co_await engine.ping();
    EXPECT_EQ(answer.error().code, Code::unavailable);
    EXPECT_THAT(answer.error().message, HasSubstr("it speaks TLS at this address"));
  }
  co_await fake.close();
}
TEST(Engine, APortWithTls) { io::testing::run(a_port_with_tls()); }

Task<> nobody_listens() {
  Engine engine({.tcp = TcpEngine{.host = "127.0.0.1", .port = 1}});
  auto answer = co_await engine.ping();
  EXPECT_EQ(answer.error().code, Code::unavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("connect: Connection refused"));
  co_await engine.close();
}
TEST(Engine, NobodyListens) { io::testing::run(nobody_listens()); }

// Nobody else's rights: root's would open every socket.
class AsNobody {
 public:
  AsNobody() : before_(::setfsuid(::geteuid() == 0 ? 65534 : ::geteuid())) {}
  ~AsNobody() { ::setfsuid(static_cast<uid_t>(before_)); }

 private:
  int before_;
};

Task<Result<io::Socket>> connect_at(std::string path, int& times) {
  ++times;
  co_return co_await io::connect_unix(std::move(path));
}

Task<> a_socket_that_is_not_for_us() {
  FakeEngine fake(co_await io::asio::this_coro::executor);
  fake.answers["/_ping"] = {200, "OK"};
  int times = 0;
  std::string forbidden = fake.path + ".root";
  auto listener = io::listen_unix(forbidden, 8);
  EXPECT_TRUE(listener);
  ::chmod(forbidden.c_str(), 0);
  ::chmod(fake.path.c_str(), 0666);
  ::chmod(fake.path.substr(0, fake.path.rfind('/')).c_str(), 0755);
  {
    AsNobody nobody;
    Engine alone({.socket = forbidden}),
        led({.socket = forbidden, .by_root = [&] { return connect_at(fake.path, times); }});
    auto refused = co_await alone.ping();
    EXPECT_EQ(refused.error().sys_errno, EACCES);
    EXPECT_TRUE(co_await led.ping());
    EXPECT_EQ(times, 1) << "what is open is used again";
    Engine away({.socket = forbidden + ".none", .by_root = [&] { return connect_at(fake.path, times); }});
    EXPECT_EQ((co_await away.ping()).error().sys_errno, ENOENT)
        << "what is not there is not there for root either";
    EXPECT_EQ(times, 1);
  }
  ::unlink(forbidden.c_str());
  co_await fake.close();
}
TEST(Engine, ASocketThatIsNotForUs) { io::testing::run(a_socket_that_is_not_for_us()); }

TEST(Engine, WhatHelps) {
  EngineAddress socket{.socket = "/run/x"}, tcp{.socket = "", .tcp = TcpEngine{.host = "h", .port = 1}};
  EXPECT_EQ(remedy_for({Code::unavailable, EACCES, "connect"}, socket), "");
  socket.by_root = [] { return io::connect_unix("/run/x"); };
  EXPECT_THAT(remedy_for({Code::unavailable, EACCES, "connect"}, socket), HasSubstr("--group docker"));
  EXPECT_EQ(remedy_for({Code::unavailable, EACCES, "connect"}, tcp), "");
  EXPECT_THAT(remedy_for({Code::unavailable, 0, "read: tlsv13 alert certificate required"}, tcp),
              HasSubstr("docker.tls_cert"));
  EXPECT_THAT(remedy_for({Code::unavailable, 0, "TLS: wrong version number"}, tcp), HasSubstr("--tlsverify"));
}

Task<> refusals_have_types() {
  FakeEngine fake(co_await io::asio::this_coro::executor);
  using Canned = FakeEngine::Canned;
  fake.answers["/containers/c/pause"] = Canned{409, R"({"message":"already paused"})"};
  fake.answers["/containers/c/start"] = Canned{500, R"({"message":"OCI runtime: no"})"};
  fake.answers["/containers/c/json"] = Canned{200, "[]"};
  {
    Engine engine({.socket = fake.path});
    EXPECT_EQ((co_await engine.inspect("nobody")).error().code, Code::not_found);
    EXPECT_EQ((co_await engine.inspect("c")).error().code, Code::corrupt);
    auto paused = co_await engine.pause("c");
    EXPECT_EQ(paused.error().code, Code::wrong_state);
    EXPECT_EQ(paused.error().message, "already paused");
    EXPECT_EQ((co_await engine.start("c")).error().code, Code::internal);
    EXPECT_TRUE(co_await engine.remove("nobody")) << "what is not there is removed";
    (void)co_await engine.inspect("../images/x");
    EXPECT_EQ(fake.asked.back(), "GET /v1.41/containers/..%2Fimages%2Fx/json");
  }
  co_await fake.close();
}
TEST(Engine, RefusalsHaveTypes) { io::testing::run(refusals_have_types()); }

Task<> another_engine() {
  FakeEngine fake(co_await io::asio::this_coro::executor);
  fake.answers["/info"] = {200, R"({"ID":"first","NCPU":2})"};
  fake.answers["/containers/c/json"] = {
      200, R"({"Id":"c","State":{"Status":"running","Running":true},"Config":{}})"};
  fake.answers["/containers/json"] = {200, R"([{"Id":"c","Labels":{"l":"v"}}])"};
  std::vector<std::string> judged;
  {
    Engine engine({.socket = fake.path});
    engine.know_by(
        {.is_known = [](const std::string& id) { return id == "first"; },
         .label = "l",
         .judge =
             [&](const std::string& id, const std::vector<std::map<std::string, std::string>>& seen) {
               judged.push_back(id + " " + std::to_string(seen.size()));
               return id == "renamed" ? Result<void>() : fail(Code::unavailable, "another one");
             }});
    EXPECT_TRUE(co_await engine.inspect("c"));
    EXPECT_EQ((co_await engine.inspect("gone")).error().code, Code::not_found) << "ours does not have it";
    EXPECT_THAT(judged, ElementsAre());
    // From one moment to the next, without a broken connection.
    fake.answers["/info"] = {200, R"({"ID":"second"})"};
    EXPECT_EQ((co_await engine.inspect("gone")).error().message, "another one");
    EXPECT_EQ((co_await engine.inspect("c")).error().code, Code::unavailable)
        << "nothing that it says counts";
    EXPECT_EQ((co_await engine.remove("gone")).error().code, Code::unavailable);
    EXPECT_EQ((co_await engine.wait("c")).error().code, Code::unavailable);
    EXPECT_EQ((co_await engine.ping()).error().code, Code::unavailable);
    EXPECT_THAT(judged, testing::Each("second 1"));
    for (const char* one : {"first", "renamed", "", "with\tblank"}) {
      fake.answers["/info"] = {200, "{\"ID\":\"" + std::string(one) + "\"}"};
      EXPECT_TRUE(co_await engine.inspect("c")) << one;
      EXPECT_EQ((co_await engine.inspect("gone")).error().code, Code::not_found) << one;
    }
    fake.answers["/info"] = {200, R"({"ID":"third"})"};
    EXPECT_EQ((co_await engine.inspect("gone")).error().code, Code::unavailable);
    fake.answers["/version"] = {
        200, R"({"Version":"4","ApiVersion":"1.41","Components":[{"Name":"Podman Engine"}]})"};
    EXPECT_EQ((co_await engine.inspect("gone")).error().code, Code::not_found)
        << "Podman has a new one each time";
    fake.answers["/version"] = {200, R"({"Version":"20","ApiVersion":"1.41"})"};
  }
  co_await fake.close();
}
TEST(Engine, AnotherOneIsNotBelieved) { io::testing::run(another_engine()); }

// Podman gives what fits any of several filters.
Task<> lists() {
  FakeEngine fake(co_await io::asio::this_coro::executor);
  {
    Engine engine({.socket = fake.path});
    fake.answers["/volumes"] = {200, R"({"Volumes":[
      {"Name":"ours","Driver":"local","Labels":{"a":"b"}},
      {"Name":"theirs","Driver":"local","Labels":{"a":"c"}},
      {"Name":"plain","Driver":"local","Labels":null}]})"};
    auto volumes = co_await engine.volumes_with("a=b", Engine::Which::unused);
    EXPECT_TRUE(volumes && volumes->size() == 1 && volumes->front().name == "ours");
    fake.answers["/containers/json"] = {
        200, R"([{"Id":"1","Labels":{"a":"b","c":""}},{"Id":"2","Labels":{"a":"b"}}])"};
    auto containers = co_await engine.containers_with({"a=b", "c"});
    EXPECT_TRUE(containers && containers->size() == 1 && containers->front().id == "1");
    EXPECT_EQ((co_await engine.labels_of_all("a"))->size(), 2u);
    EXPECT_TRUE((co_await engine.labels_of_all("d"))->empty());
  }
  co_await fake.close();
}
TEST(Engine, ListsAreLookedThrough) { io::testing::run(lists()); }

Task<> events() {
  FakeEngine fake(co_await io::asio::this_coro::executor);
  {
    Engine engine({.socket = fake.path});
    EXPECT_EQ((co_await engine.events("a=b")).error().code, Code::not_found);
    EXPECT_EQ(
        fake.asked.back(),
        "GET /v1.41/events?filters=%7B%22type%22%3A%5B%22container%22%5D%2C%22event%22%3A%5B%22pause%22%2C%"
        "22unpause%22%2C%22die%22%2C%22destroy%22%5D%2C%22label%22%3A%5B%22a%3Db%22%5D%7D");
    fake.answers["/events"] = {200,
                               "{\"Action\":\"pause\",\"Actor\":{\"ID\":\"a\"}}\n\r\n"
                               "{\"Action\":\"start\",\"Actor\":{\"ID\":\"a\"}}\n"
                               "{\"Action\":\"die\",\"Actor\":{\"ID\":\"b\"}}\n{\"Action\":\"pau"};
    auto stream = co_await engine.events(std::nullopt);
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    EXPECT_EQ((co_await stream->next())->container, "a");
    EXPECT_EQ((co_await stream->next())->kind, EngineEvent::Kind::died);
    EXPECT_EQ((co_await stream->next()).error().code, Code::unavailable) << "half a line is none";
    fake.answers["/events"] = {200, "no JSON\n"};
    stream = co_await engine.events(std::nullopt);
    EXPECT_EQ((co_await stream->next()).error().code, Code::corrupt);
    fake.answers["/events"] = {200, std::string(2 << 20, 'x')};
    stream = co_await engine.events(std::nullopt);
    EXPECT_EQ((co_await stream->next()).error().code, Code::corrupt) << "no line is so long";
  }
  co_await fake.close();
}
TEST(Engine, Events) { io::testing::run(events()); }

Task<> nobody_there() {
  Engine engine({.socket = "/nonexistent/docker.sock"});
  auto answer = co_await engine.ping();
  EXPECT_EQ(answer.error().code, Code::unavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("the Docker engine does not answer"));
}
TEST(Engine, NobodyThere) { io::testing::run(nobody_there()); }

Task<> pulls() {
  FakeEngine fake(co_await io::asio::this_coro::executor);
  fake.answers["/images/create"] = {200,
                                    "{\"status\":\"Pulling\",\"id\":\"a\"}\r\n{\"status\":\"Done\"}\r\n"};
  {
    Engine engine({.socket = fake.path});
    std::vector<std::string> heard;
    auto hear = [&heard](std::string text) { heard.push_back(std::move(text)); };
    EXPECT_TRUE(co_await engine.pull("registry.example/a", "1", "",
                                     RegistryLogin{"u", "p", "registry.example"}, hear));
    EXPECT_THAT(heard, ElementsAre("a: Pulling", "Done"));
    EXPECT_EQ(fake.asked.back(), "POST /v1.41/images/create?fromImage=registry.example%2Fa&tag=1");
    EXPECT_FALSE(fake.last_headers.get("X-Registry-Auth").empty());
    // The status says that all is well; the last line does not.
    fake.answers["/images/create"] = {200, "{\"status\":\"Pulling\"}\n{\"error\":\"manifest unknown\"}\n"};
    auto failed = co_await engine.pull("a", "1", "", std::nullopt, hear);
    EXPECT_FALSE(failed);
    EXPECT_EQ(failed.error().message, "manifest unknown");
    EXPECT_EQ(pull_failure(failed.error()).kind, CreateFailure::Kind::image_not_found);
    fake.answers["/images/create"] = {200, "no JSON\n"};
    EXPECT_EQ((co_await engine.pull("a", "1", "", std::nullopt, hear)).error().code, Code::unavailable);
  }
  co_await fake.close();
}
TEST(Engine, Pulls) { io::testing::run(pulls()); }

TEST(Engine, WhatRunsWhere) {
  for (auto [machine, platform] : {std::pair("amd64", "linux/amd64"),
                                   {"x86_64", "linux/amd64"},
                                   {"arm64", "linux/aarch64"},
                                   {"arm64", "linux/arm64v8"},
                                   {"amd64", "linux/386"},
                                   {"arm64", "linux/arm"},
                                   {"", "linux/amd64"},
                                   {"amd64", "linux/"}})
    EXPECT_TRUE(runs_on(machine, platform)) << machine << " " << platform;
  for (auto [machine, platform] : {std::pair("amd64", "linux/arm64"),
                                   {"arm64", "linux/amd64"},
                                   {"386", "linux/amd64"},
                                   {"s390x", "linux/386"}})
    EXPECT_FALSE(runs_on(machine, platform)) << machine << " " << platform;
}

Task<> an_image_for_another_machine() {
  using Policy = ImageRequest::Pull;
  using Kind = CreateFailure::Kind;
  auto executor = co_await io::asio::this_coro::executor;
  FakeEngine fake(executor);
  fake.answers["/version"] = {
      200, R"({"Version":"20.10","ApiVersion":"1.41","MinAPIVersion":"1.12","Arch":"amd64"})"};
  fake.answers["/images/app%3A1/json"] = {200, R"({"Id":"sha256:1","Os":"linux","Architecture":"arm64"})"};
  fake.answers["/images/sha256%3A1/json"] = fake.answers["/images/app%3A1/json"];
  fake.answers["/images/create"] = {200, "{\"status\":\"Done\"}\n"};
  {
    Engine engine({.socket = fake.path});
    ImagePulls never(executor, engine, Policy::never, "registry.example"),
        pulls(executor, engine, Policy::if_missing, "registry.example");
    auto refused = co_await never.find("h", {.reference = "app:1"});
    EXPECT_EQ(refused.error().kind, Kind::image_not_found);
    EXPECT_THAT(refused.error().error.message,
                HasSubstr("for linux/arm64, and the engine's machine is amd64"));
    EXPECT_THAT(refused.error().error.message, HasSubstr("docker pull app:1"));
    EXPECT_TRUE(co_await never.find("h", {.reference = "app:1", .platform = "linux/arm64"}))
        << "somebody wants it";
    EXPECT_TRUE(co_await never.find("h", {.reference = "x", .id = "sha256:1"}))
        << "a snapshot is of this engine";
    auto pulled = co_await pulls.find("h", {.reference = "app:1"});
    EXPECT_THAT(fake.asked, testing::Contains("POST /v1.41/images/create?fromImage=app&tag=1"));
    EXPECT_EQ(pulled.error().kind, Kind::image_invalid) << "the registry has none for this machine";
    fake.answers["/images/create"] = {500, R"({"message":"dial tcp: connection refused"})"};
    auto away = co_await pulls.find("h", {.reference = "app:1"});
    EXPECT_EQ(away.error().kind, Kind::image_unreachable);
    EXPECT_THAT(away.error().error.message, HasSubstr("linux/arm64"));
    fake.answers["/images/app%3A1/json"] = {200, R"({"Id":"sha256:2","Os":"linux","Architecture":"amd64"})"};
    EXPECT_EQ((co_await pulls.find("h", {.reference = "app:1"}))->id, "sha256:2");
    co_await never.close();
    co_await pulls.close();
  }
  co_await fake.close();
}
TEST(Engine, AnImageForAnotherMachine) { io::testing::run(an_image_for_another_machine()); }

TEST(Engine, WhatARefusedPullMeans) {
  using Kind = CreateFailure::Kind;
  auto kind = [](Code code, const char* words) { return pull_failure({code, 0, words}).kind; };
  EXPECT_EQ(kind(Code::unavailable, "away"), Kind::unavailable);
  EXPECT_EQ(kind(Code::internal, "unauthorized: authentication required"), Kind::image_refused);
  EXPECT_EQ(kind(Code::not_found, "pull access denied for x"), Kind::image_refused);
  EXPECT_EQ(kind(Code::not_found, "manifest for x not found"), Kind::image_not_found);
  EXPECT_EQ(kind(Code::internal, "download failed after attempts=1: unknown blob"), Kind::image_not_found);
  EXPECT_EQ(kind(Code::internal, "dial tcp: connection refused"), Kind::image_unreachable);
  EXPECT_EQ(kind(Code::internal, "no matching manifest for linux/arm64"), Kind::image_invalid);
  auto full =
      pull_failure({Code::internal, 0,
                    "failed to register layer: Error processing tar file(exit status 1): write /x: no "
                    "space left on device"});
  EXPECT_EQ(full.kind, Kind::image_invalid);
  EXPECT_EQ(full.error.code, Code::exhausted) << "not the registry's fault";
  EXPECT_EQ(parse_error(R"({"message": "mkdir /x: no space left on device"})", 500),
            "the Docker engine's own disk is full: mkdir /x: no space left on device");
  EXPECT_EQ(parse_error(R"({"message": "mkdir /sys/fs/cgroup/x: no space left on device"})", 500),
            "mkdir /sys/fs/cgroup/x: no space left on device");
  EXPECT_EQ(kind(Code::internal, "filesystem layer verification failed for digest x"), Kind::image_invalid);
  EXPECT_EQ(kind(Code::internal, "layers from manifest don't match image configuration"),
            Kind::image_invalid);
  EXPECT_EQ(kind(Code::internal, "invalid character '<' looking for beginning of value"),
            Kind::image_invalid);
  EXPECT_EQ(kind(Code::internal, "dial tcp: lookup registry.invalid: no such host"), Kind::image_unreachable);
  // A page for people: its status counts, and none of its words.
  auto page = [&](const char* status) {
    std::string words =
        std::string("error parsing HTTP ") + status +
        " response body: invalid character '<' looking for beginning of value: \"<html>denied, "
        "not found</html>\"";
    return kind(Code::internal, words.c_str());
  };
  EXPECT_EQ(page("502"), Kind::image_unreachable);
  EXPECT_EQ(page("429"), Kind::image_unreachable);
  EXPECT_EQ(page("403"), Kind::image_refused);
  EXPECT_EQ(page("404"), Kind::image_not_found);
}

}  // namespace
}  // namespace osb::docker
