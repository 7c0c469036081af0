#include "cli/build.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <memory>

#include "base/strings.h"
#include "cli/api_error.h"
#include "cli/build_stage.h"
#include "cli/copy_files.h"
#include "cli/scratch_sandbox.h"
#include "cli/terminal.h"
#include "image/accounts.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using Kind = Instruction::Kind;
using SandboxPtr = std::unique_ptr<ScratchSandbox>;
using Sandboxes = std::vector<SandboxPtr>;
using Work = std::function<Task<Result<void>>(Sandboxes&)>;

constexpr auto kLookAgain = std::chrono::milliseconds(50);
constexpr char kSnapshotImage[] = "opensandbox-snapshots:";  // and its id
constexpr size_t kMaxAccounts = 4 << 20;

std::string member(const bj::value& value, std::string_view name) {
  json::Issues ignored;
  return json::Field::root(value, ignored, "answer")[name].string().value_or("");
}

struct Ids {
  uint32_t uid = 0, gid = 0;
  std::string home = {};
};

class Build {
 public:
  Build(BuildImageOptions options, Signals& signals, ContextTree context, Dockerfile file)
      : options_(std::move(options)),
        signals_(signals),
        context_(std::move(context)),
        file_(std::move(file)),
        api_(options_.connection),
        stages_(file_.stages.size()) {}

  Task<Result<void>> run() {
    for (const auto& [name, value] : options_.arguments) arguments_.given[name] = value;
    CO_TRY(co_await set_automatic_arguments());
    CO_TRY(read_global_arguments(file_, arguments_));
    size_t last = file_.stages.size() - 1;
    if (!options_.target.empty()) {
      auto found = stage_named(options_.target, file_.stages.size());
      if (!found) co_return fail(Code::not_found, "there is no stage of the name that --target has");
      last = *found;
    }
    CO_TRY(co_await ensure_stage(last));
    for (const auto& [name, value] : arguments_.given) {
      if (!arguments_.used.contains(name))
        fmt::print(stderr, "osb: no ARG of the build has the name {}\n", name);
    }
    co_return co_await commit(*stages_[last]);
  }

 private:
  template <class... Words>
  void say(fmt::format_string<Words...> format, Words&&... words) {
    if (options_.quiet) return;
    fmt::print(format, std::forward<Words>(words)...);
    std::fflush(stdout);
  }

  // The server's platform: steps run there. A --build-arg of the same name comes first.
  Task<Result<void>> set_automatic_arguments() {
    const bj::value host = CO_TRY(co_await api_.image("host"));
    std::string platform = member(host, "platform");
    if (platform.empty()) co_return Result<void>();
    for (const auto& [name, value] : automatic_arguments(platform)) {
      auto given = arguments_.given.find(name);
      arguments_.global[name] = given == arguments_.given.end() ? value : given->second;
    }
    co_return Result<void>();
  }

  static Error at(int line, Error error) { return std::move(error).in("line " + std::to_string(line)); }

  // By name, or by number from 0. Only those before `before`.
  std::optional<size_t> stage_named(const std::string& name, size_t before) const {
    std::string wanted = name;
    for (char& c : wanted) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    for (size_t i = 0; i < before; ++i) {
      if (!wanted.empty() && file_.stages[i].name == wanted) return i;
    }
    auto number = parse_number<size_t>(wanted);
    if (number && *number < before) return *number;
    return std::nullopt;
  }

  // Only those that the wanted one needs.
  Task<Result<void>> ensure_stage(size_t index) {
    if (stages_[index]) co_return Result<void>();
    const Stage& stage = file_.stages[index];
    BuildStage state;
    Lookup global = [this](std::string_view name) -> std::optional<std::string> {
      auto found = arguments_.global.find(std::string(name));
      return found == arguments_.global.end() ? std::nullopt : std::optional(found->second);
    };
    auto base = expand(stage.base, file_.escape, global);
    if (!base) co_return std::unexpected(at(stage.line, base.error()));
    if (base->empty())
      co_return std::unexpected(at(stage.line, {Code::invalid_argument, 0, "FROM has no image"}));
    if (*base == "scratch")
      co_return std::unexpected(at(stage.line, {Code::unsupported, 0, "FROM scratch is not supported"}));
    auto earlier = stage_named(*base, index);
    if (earlier && !file_.stages[*earlier].name.empty()) {
      CO_TRY(co_await ensure_stage(*earlier));
      state = *stages_[*earlier];
      state.arguments.clear();
      state.has_own_cmd = false;
    } else {
      auto found = co_await find_base(*base);
      if (!found) co_return std::unexpected(at(stage.line, found.error()));
      state = std::move(*found);
    }
    say("[{}] FROM {}\n", label_of(index), stage.base);
    size_t number = 0;
    for (const Instruction& one : stage.instructions) {
      say("[{} {}/{}] {}\n", label_of(index), ++number, stage.instructions.size(), one.text);
      if (signals_.count() > 0) co_return fail(Code::cancelled, "interrupted");
      auto done = co_await carry_out(one, index, state);
      if (!done) co_return std::unexpected(at(one.line, done.error()));
    }
    stages_[index] = std::move(state);
    co_return Result<void>();
  }

  std::string label_of(size_t index) const {
    return file_.stages[index].name.empty() ? std::to_string(index) : file_.stages[index].name;
  }

  // What the server knows of an image; it is brought here by a sandbox that is made from it.
  Task<Result<BuildStage>> find_base(std::string name) {
    auto found = co_await api_.image(name);
    if (!found && found.error().code == Code::not_found) {
      std::vector<std::string> images = {name};
      CO_TRY(co_await in_sandboxes(std::move(images), [](Sandboxes&) { return nothing(); }));
      found = co_await api_.image(name);
    }
    const bj::value record = CO_TRY(std::move(found));
    BuildStage state;
    state.image = name;
    state.key = name;
    json::Issues ignored;
    auto field = json::Field::root(record, ignored, "image");
    // The host's own, or a directory of the configuration: nothing tells what is in it.
    if (field["directory"].boolean().value_or(false)) co_return state;
    state.extend_key(member(record, "id"));
    for (const std::string& text : field["env"].string_list().value_or(std::vector<std::string>())) {
      size_t equals = text.find('=');
      if (equals != text.npos) state.env.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    std::string workdir = member(record, "workdir");
    if (workdir.starts_with('/')) state.workdir = workdir;
    co_return state;
  }

  static Task<Result<void>> nothing() { co_return Result<void>(); }

  Task<Result<void>> carry_out(const Instruction& one, size_t index, BuildStage& state) {
    if (one.kind == Kind::run) co_return co_await run_program(one, state);
    if (one.kind == Kind::copy || one.kind == Kind::add) co_return co_await copy(one, index, state);
    CO_TRY(apply(one, file_.escape, arguments_, state));
    state.extend_key(one.text + "\n" + json::print(state.config()));
    co_return Result<void>();
  }

  // RUN

  Task<Result<void>> run_program(const Instruction& one, BuildStage& state) {
    std::vector<std::string> argv = one.words;
    if (!one.is_list) {
      argv = state.shell;
      argv.push_back(one.words.front());
    }
    std::string key = "RUN";
    for (const std::string& word : argv) key += " " + std::to_string(word.size()) + ":" + word;
    for (const auto& [name, value] : state.environment())
      key += "\n" + std::to_string(value.size()) + ":" + name + "=" + value;
    key += "\n" + state.workdir + "\n" + state.user.value_or("");
    state.extend_key(key);
    if (co_await is_cached(state)) co_return Result<void>();
    std::vector<std::string> images = {image_of(state)};
    co_return co_await in_sandboxes(
        std::move(images), [this, argv, &state](Sandboxes& made) { return run_in(*made[0], argv, state); });
  }

  Task<Result<void>> run_in(ScratchSandbox& sandbox, std::vector<std::string> argv, BuildStage& state) {
    CO_TRY(co_await make_workdir(sandbox, state));
    CommandRequest what{.argv = std::move(argv),
                        .workdir = state.workdir,
                        .timeout = std::nullopt,
                        .env = state.environment()};
    if (state.user) {
      Ids ids = CO_TRY(co_await ids_of(sandbox, *state.user));
      what.ids = std::pair(ids.uid, ids.gid);
      if (!ids.home.empty() && !state.find("HOME")) what.env.emplace_back("HOME", ids.home);
    }
    auto started = std::chrono::steady_clock::now();
    auto last = CO_TRY(co_await sandbox.api().run(sandbox.id(), std::move(what), output()));
    auto elapsed =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - started);
    CommandEnd end = end_from(last, std::nullopt, elapsed);
    if (end.status != 0)
      co_return fail(Code::wrong_state, "the command ended with " + std::to_string(end.status) +
                                            (end.problem.empty() ? "" : ": " + end.problem));
    co_return co_await keep(sandbox, state);
  }

  OutputSink output() {
    return [this](const StreamEvent& event) -> Result<void> {
      bool is_output = event.kind == StreamEvent::Kind::output;
      if (!is_output && event.kind != StreamEvent::Kind::errors) return {};
      if (options_.quiet && is_output) return {};
      return write_unless_signalled(is_output ? STDOUT_FILENO : STDERR_FILENO, event.text, signals_);
    };
  }

  // COPY

  Task<Result<void>> copy(const Instruction& one, size_t index, BuildStage& state) {
    std::vector<std::string> words;
    for (const std::string& word : one.words)
      words.push_back(one.is_list ? CO_TRY(expand_plain(word, state))
                                  : CO_TRY(expand(word, file_.escape, state.lookup())));
    std::string target = words.back();
    bool is_directory = target.ends_with('/') || target.ends_with("/.") || target == ".";
    words.pop_back();
    CopyTarget to{.path = join_path(state.workdir, target) + (is_directory ? "/" : "")};
    std::string owner;
    if (auto flag = one.flags.find("chown"); flag != one.flags.end())
      owner = CO_TRY(expand(flag->second, file_.escape, state.lookup()));
    if (auto flag = one.flags.find("chmod"); flag != one.flags.end()) {
      std::string digits = CO_TRY(expand(flag->second, file_.escape, state.lookup()));
      bool octal =
          !digits.empty() && digits.size() <= 4 && digits.find_first_not_of("01234567") == digits.npos;
      if (!octal) co_return fail(Code::unsupported, "--chmod takes an octal number such as 755");
      to.mode = static_cast<unsigned>(std::stoul(digits, nullptr, 8));
      if (*to.mode > 0777)
        co_return fail(Code::unsupported,
                       "--chmod=" + digits + ": files arrive without set-id and sticky bits; write --chmod=" +
                           digits.substr(1) + " and RUN chmod " + digits + " behind it");
    }
    // The context's files are looked at now: the key of the step covers them.
    std::string source = "context", from_image;
    CopyPlan plan;
    if (auto from = one.flags.find("from"); from != one.flags.end()) {
      BuildStage other = CO_TRY(co_await stage_for(from->second, index));
      source = other.key;
      from_image = image_of(other);
    } else {
      plan = CO_TRY(co_await plan_copy(context_, words));
      if (one.kind == Kind::add) CO_TRY(refuse_archives(plan));
      source = CO_TRY(co_await digest_of(context_, plan));
    }
    std::string key =
        "COPY " + source + "\n" + to.path + "\n" + owner + "\n" + (to.mode ? std::to_string(*to.mode) : "");
    for (const std::string& word : words) key += "\n" + std::to_string(word.size()) + ":" + word;
    state.extend_key(key);
    if (co_await is_cached(state)) co_return Result<void>();
    std::vector<std::string> images = {image_of(state)};
    if (!from_image.empty()) images.push_back(from_image);
    co_return co_await in_sandboxes(std::move(images),
                                    [this, plan, to, words, owner, &state](Sandboxes& made) {
                                      return copy_in(made, plan, words, to, owner, state);
                                    });
  }

  // Words of a list have no quotes to take away.
  Result<std::string> expand_plain(const std::string& word, const BuildStage& state) const {
    std::string quoted;
    for (char c : word) {
      if (c == '\'' || c == '"' || c == file_.escape) quoted += file_.escape;
      quoted += c;
    }
    return expand(quoted, file_.escape, state.lookup());
  }

  Task<Result<BuildStage>> stage_for(std::string name, size_t before) {
    if (auto found = stage_named(name, before)) {
      CO_TRY(co_await ensure_stage(*found));
      co_return *stages_[*found];
    }
    co_return co_await find_base(std::move(name));
  }

  Task<Result<void>> copy_in(Sandboxes& made, CopyPlan plan, std::vector<std::string> words, CopyTarget to,
                             std::string owner, BuildStage& state) {
    ScratchSandbox& sandbox = *made[0];
    CO_TRY(co_await make_workdir(sandbox, state));
    if (!owner.empty()) {
      Ids ids = CO_TRY(co_await ids_of(sandbox, owner));
      to.uid = ids.uid;
      // Of a user alone: the group of the same number.
      to.gid = owner.find(':') == owner.npos ? ids.uid : ids.gid;
    }
    if (made.size() == 1) {
      CO_TRY(co_await copy_files(context_, std::move(plan), std::move(to), sandbox.api(), sandbox.id()));
    } else {
      SandboxTree tree(made[1]->api(), made[1]->id());
      auto found = CO_TRY(co_await plan_copy(tree, std::move(words)));
      CO_TRY(co_await copy_files(tree, std::move(found), std::move(to), sandbox.api(), sandbox.id()));
    }
    co_return co_await keep(sandbox, state);
  }

  // What both have

  static std::string image_of(const BuildStage& state) {
    return state.snapshot.empty() ? state.image : kSnapshotImage + state.snapshot;
  }

  Task<Result<void>> make_workdir(ScratchSandbox& sandbox, const BuildStage& state) {
    if (state.workdir == "/") co_return Result<void>();
    bj::object wanted{{state.workdir, bj::object{{"mode", 755}}}};
    CO_TRY(co_await sandbox.api().ask_execd(sandbox.id(), "POST", "/directories", json::print(wanted)));
    co_return Result<void>();
  }

  // A user as the files of the sandbox know it.
  Task<Result<Ids>> ids_of(ScratchSandbox& sandbox, std::string user) {
    std::string files[2];
    const char* paths[] = {"/etc/passwd", "/etc/group"};
    for (int i = 0; i < 2; ++i) {
      auto text = co_await sandbox.api().download(sandbox.id(), paths[i], kMaxAccounts);
      if (!text && text.error().code != Code::not_found) co_return std::unexpected(std::move(text.error()));
      if (text) files[i] = std::move(*text);
    }
    image::ImageConfig config;
    config.user = std::move(user);
    CO_TRY(image::resolve_user(config, files[0], files[1]));
    co_return Ids{config.uid, config.gid, config.home};
  }

  Task<bool> is_cached(BuildStage& state) {
    if (options_.no_cache) co_return false;
    std::string target =
        "/v1/snapshots?state=Ready&pageSize=1&name=" + percent_encode(kBuildCache + state.key);
    auto answer = co_await api_.ask("GET", std::move(target));
    if (!answer) co_return false;
    json::Issues ignored;
    auto items = json::Field::root(*answer, ignored, "answer")["items"].array();
    if (!items || items->empty()) co_return false;
    std::string id = (*items)[0]["id"].string().value_or("");
    if (id.empty()) co_return false;
    state.snapshot = std::move(id);
    say("  cached\n");
    co_return true;
  }

  Task<Result<void>> keep(ScratchSandbox& sandbox, BuildStage& state) {
    bj::object body{{"name", kBuildCache + state.key}};
    std::string target = "/v1/sandboxes/" + percent_encode(sandbox.id()) + "/snapshots";
    auto answer = CO_TRY(co_await api_.ask("POST", std::move(target), json::print(body)));
    std::string id = member(answer, "id");
    while (true) {
      json::Issues ignored;
      auto status = json::Field::root(answer, ignored, "snapshot")["status"];
      std::string word = status["state"].string().value_or("");
      if (word == "Ready") break;
      if (word != "Creating")
        co_return fail(Code::internal, "the step was not kept: " + status["message"].string().value_or(""));
      co_await io::sleep_for(kLookAgain);
      answer = CO_TRY(co_await api_.ask("GET", "/v1/snapshots/" + percent_encode(id)));
    }
    state.snapshot = std::move(id);
    co_return Result<void>();
  }

  SandboxPtr sandbox_for(const std::string& image) const {
    NewSandbox what{.image = image,
                    .env = {},
                    .cpu = options_.cpu,
                    .memory = options_.memory,
                    .network = options_.network,
                    .timeout = std::nullopt};
    // What find_base() has looked at: another one under the name would be kept as steps over this one.
    bool is_stored = image != "host" && !image.starts_with(kSnapshotImage);
    if (is_stored) what.pull_policy = "if-not-present";
    return std::make_unique<ScratchSandbox>(options_.connection, std::move(what),
                                            ScratchSandbox::Afterwards::remove);
  }

  // Whatever happens, and also after a signal, the sandboxes are removed.
  Task<Result<void>> in_sandboxes(std::vector<std::string> images, Work work) {
    Sandboxes made;
    Result<void> done;
    for (const std::string& image : images) {
      if (!done || signals_.count() > 0) break;
      made.push_back(sandbox_for(image));
      PullLine line(options_.quiet ? PullLine::Wanted::no : PullLine::Wanted::yes);
      done = co_await made.back()->create(signals_, line);
    }
    if (done && signals_.count() == 0) {
      std::optional<Result<void>> outcome;
      co_await io::race(work_leased(made, std::move(work), &outcome), signals_.more_than(0));
      done = outcome ? std::move(*outcome) : fail(Code::cancelled, "interrupted");
    }
    if (signals_.count() > 0) done = fail(Code::cancelled, "interrupted");
    for (const SandboxPtr& sandbox : made) co_await sandbox->clean_up(signals_);
    co_return done;
  }

  Task<> work_leased(Sandboxes& made, Work work, std::optional<Result<void>>* outcome) {
    std::optional<Result<void>> result;
    int winner = co_await io::race(store(&result, work(made)), keep_leases(made));
    if (winner == 0)
      *outcome = std::move(*result);
    else
      *outcome = fail(Code::unavailable, "lost the connection to the server for a minute");
  }

  static Task<> keep_leases(Sandboxes& made) {
    if (made.size() == 1) co_return co_await made[0]->keep_lease();
    co_await io::race(made[0]->keep_lease(), made[1]->keep_lease());
  }

  // The image

  Task<Result<void>> commit(BuildStage& state) {
    if (!state.snapshot.empty()) co_return co_await commit_from("snapshotId", state.snapshot, state);
    // No step has changed a file.
    std::vector<std::string> images = {state.image};
    co_return co_await in_sandboxes(std::move(images), [this, &state](Sandboxes& made) {
      return commit_from("sandboxId", made[0]->id(), state);
    });
  }

  Task<Result<void>> commit_from(std::string kind, std::string id, BuildStage& state) {
    std::string name = options_.name.empty() ? "build/" + state.key.substr(0, 12) : options_.name;
    bj::object body{{kind, id}, {"name", name}, {"config", state.config()}};
    auto answer = CO_TRY(co_await api_.ask("POST", "/v1/images/commit", json::print(body)));
    std::string image = member(answer, "id");
    if (options_.quiet)
      fmt::print("{}\n", image);
    else
      say("built {} {}\n", name, image.substr(0, 12));
    co_return Result<void>();
  }

  BuildImageOptions options_;
  Signals& signals_;
  ContextTree context_;
  Dockerfile file_;
  Api api_;
  BuildArguments arguments_;
  std::vector<std::optional<BuildStage>> stages_;
};

std::string path_of_file(const BuildImageOptions& options) {
  return options.file.empty() ? options.context + "/Dockerfile" : options.file;
}

Result<Dockerfile> read_dockerfile(const std::string& path) {
  auto text = TRY(in_context(path, read_file(path, kMaxDockerfile)));
  return in_context(path, parse_dockerfile(text));
}

}  // namespace

Task<int> build_image(BuildImageOptions options) {
  auto failed = [](const Error& error) {
    print_error("osb", error);
    return 1;
  };
  const std::string path = path_of_file(options);
  auto file = read_dockerfile(path);
  if (!file) co_return failed(file.error());
  auto context = ContextTree::open(options.context);
  if (!context) co_return failed(context.error());
  auto signals = Signals::create(co_await io::asio::this_coro::executor);
  if (!signals) co_return failed(signals.error());
  Build build(std::move(options), *signals, std::move(*context), std::move(*file));
  auto done = co_await build.run();
  if (signals->first()) {
    fmt::print(stderr, "osb: interrupted; what was built so far is kept for the next build\n");
    co_return 128 + *signals->first();
  }
  if (done) co_return 0;
  co_return failed(std::move(done.error()).in(path));
}

}  // namespace osb::cli
