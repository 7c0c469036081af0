#include "cli/sandbox_create.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fd.h"
#include "base/strings.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using namespace std::chrono_literals;

constexpr auto kUsualLife = 600s;  // of the published client, when nobody says otherwise
constexpr auto kLook = 100ms;
constexpr size_t kFileLimit = 1 << 20;
constexpr const char* kWireNames[] = {
    "image",           "templateId",     "snapshotId",       "platform",
    "timeout",         "resourceLimits", "resourceRequests", "env",
    "metadata",        "lifecycle",      "entrypoint",       "networkPolicy",
    "credentialProxy", "secureAccess",   "volumes",          "extensions"};

Error refused(std::string message) { return {Code::invalid_argument, 0, std::move(message)}; }

Result<bj::value> read_json_file(const std::string& path, std::string_view option) {
  auto text = TRY(in_context(option, read_file(path, kFileLimit)));
  return in_context(option, json::parse(text));
}

// As Python prints a timedelta: "0:10:00", "1 day, 2:00:00".
std::string python_duration(std::chrono::seconds time) {
  auto days = time / 24h, rest = (time % 24h).count();
  std::string out = fmt::format("{}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
  return days == 0 ? out : fmt::format("{} day{}, {}", days, days == 1 ? "" : "s", out);
}

struct Create : ServerCommand {
  std::string image, username, password, template_id, snapshot, file, life, policy_file, volumes_file,
      ready = "30s";
  std::vector<std::string> env, metadata, extensions, resources, entrypoint;
  bool credential_proxy = false, at_once = false;

  void options(CLI::App& app) override {
    app.add_option("-i,--image", image, "image of the sandbox; else defaults.image of the settings");
    app.add_option("--image-auth-username", username, "for the image's registry");
    app.add_option("--image-auth-password", password, "for the image's registry");
    app.add_option("--template", template_id, "template to make it from, instead of an image");
    app.add_option("--snapshot-id", snapshot, "snapshot to make it from, instead of an image");
    app.add_option("-f,--file", file, "file with the whole request as JSON, as the API takes it");
    app.add_option("-t,--timeout", life, "how long it lives: 10m, 1h; none: until it is removed");
    repeatable(app.add_option("-e,--env", env, "KEY=VALUE for its processes; repeatable"));
    repeatable(app.add_option("-m,--metadata", metadata, "KEY=VALUE to find it by; repeatable"));
    repeatable(app.add_option("--extension", extensions, "KEY=VALUE of an extension; repeatable"));
    repeatable(app.add_option("--resource", resources, "limit: cpu=1, memory=2Gi; repeatable"));
    repeatable(
        app.add_option("--entrypoint", entrypoint, "word of the program that is its life; repeatable"));
    app.add_option("--network-policy-file", policy_file, "file with what it may reach, as JSON");
    app.add_flag("--credential-proxy", credential_proxy,
                 "with a credential vault; needs --network-policy-file");
    app.add_option("--volumes-file", volumes_file, "file with a list of volumes, as JSON");
    app.add_flag("--skip-health-check", at_once, "do not wait until it answers");
    app.add_option("--ready-timeout", ready, "how long to wait for that (default: 30s)");
    output.options(app);
  }

  // What it is made of, into the body and into what is printed.
  Result<void> origin(const ClientSettings& settings, bj::object& body, bj::object& said) {
    if (int(!image.empty()) + int(!template_id.empty()) + int(!snapshot.empty()) > 1)
      return std::unexpected(refused("--image, --template and --snapshot-id exclude each other"));
    if (!template_id.empty()) {
      if (life.empty() || life == "none")
        return std::unexpected(refused("--template needs --timeout with a time"));
      if (!env.empty() || !resources.empty() || !entrypoint.empty() || !volumes_file.empty() ||
          credential_proxy)
        return std::unexpected(
            refused("with --template, the template says the environment, limits, entrypoint and volumes"));
      said["template"] = body["templateId"] = template_id;
      return {};
    }
    if (!snapshot.empty()) {
      said["snapshot_id"] = body["snapshotId"] = snapshot;
      return {};
    }
    if (image.empty()) image = settings.default_image.value_or("");
    if (image.empty())
      return std::unexpected(
          refused("name an image with --image, or set defaults.image: osb config set defaults.image IMAGE"));
    if (username.empty() != password.empty())
      return std::unexpected(refused("--image-auth-username and --image-auth-password go together"));
    bj::object from{{"uri", image}};
    if (!username.empty()) from["auth"] = bj::object{{"username", username}, {"password", password}};
    body["image"] = std::move(from);
    said["image"] = image;
    return {};
  }

  // The request by its options; the word is what is printed about the time.
  Result<std::string> request(bj::object& body, bj::object& said) {
    ClientSettings settings = TRY(client_settings(*to.app));
    TRY(origin(settings, body, said));
    if (life.empty()) life = settings.default_timeout.value_or("");
    std::string told = "sdk-default";
    auto time = kUsualLife;
    if (life == "none") {
      told = "manual-cleanup";
    } else if (!life.empty()) {
      time = std::chrono::duration_cast<std::chrono::seconds>(
          TRY(in_context("--timeout", parse_duration(life))));
      told = python_duration(time);
    }
    if (life != "none") body["timeout"] = time.count();
    bool plain = template_id.empty();
    if (plain) {
      bj::array words(entrypoint.begin(), entrypoint.end());
      body["entrypoint"] = entrypoint.empty() ? bj::array{"tail", "-f", "/dev/null"} : std::move(words);
      bj::object limits = TRY(key_values(resources, "--resource"));
      body["resourceLimits"] =
          limits.empty() ? bj::object{{"cpu", "1"}, {"memory", "2Gi"}} : std::move(limits);
      if (!env.empty()) body["env"] = TRY(key_values(env, "--env"));
    }
    if (!metadata.empty()) body["metadata"] = TRY(key_values(metadata, "--metadata"));
    if (!extensions.empty()) body["extensions"] = TRY(key_values(extensions, "--extension"));
    if (!policy_file.empty())
      body["networkPolicy"] = TRY(read_json_file(policy_file, "--network-policy-file"));
    if (credential_proxy && policy_file.empty())
      return std::unexpected(refused("--credential-proxy needs --network-policy-file"));
    if (credential_proxy) body["credentialProxy"] = bj::object{{"enabled", true}};
    if (!volumes_file.empty()) {
      body["volumes"] = TRY(read_json_file(volumes_file, "--volumes-file"));
      if (!body["volumes"].is_array())
        return std::unexpected(refused("--volumes-file needs a list of volumes"));
    }
    return told;
  }

  bool has_building_options() const {
    return !image.empty() || !username.empty() || !template_id.empty() || !snapshot.empty() ||
           !life.empty() || !policy_file.empty() || !volumes_file.empty() || !env.empty() ||
           !metadata.empty() || !extensions.empty() || !resources.empty() || !entrypoint.empty() ||
           credential_proxy;
  }

  Result<std::string> request_of_file(bj::object& body, bj::object& said) const {
    if (has_building_options())
      return std::unexpected(refused(
          "--file has the whole request; only --skip-health-check, --ready-timeout and -o go with it"));
    auto value = TRY(read_json_file(file, "--file"));
    if (!value.is_object()) return std::unexpected(refused("--file needs a JSON object"));
    body = value.as_object();
    for (const auto& member : body) {
      if (std::ranges::none_of(kWireNames, [&](const char* name) { return member.key() == name; }))
        return std::unexpected(refused(fmt::format(
            "--file has a member that no request has; the members are {}", fmt::join(kWireNames, ", "))));
    }
    if (const auto* from = body.if_contains("image"))
      said["image"] =
          from->is_object() && from->as_object().contains("uri") ? from->as_object().at("uri") : *from;
    if (const auto* from = body.if_contains("templateId")) said["template"] = *from;
    if (const auto* from = body.if_contains("snapshotId")) said["snapshot_id"] = *from;
    said["request_file"] = file;
    const auto* time = body.if_contains("timeout");
    if (!time) return std::string("sdk-default");
    return time->is_int64() ? python_duration(std::chrono::seconds(time->as_int64()))
                            : std::string("manual-cleanup");
  }

  Task<Result<int>> run(Api& api) override {
    bj::object body, said;
    std::string told = CO_TRY(file.empty() ? request(body, said) : request_of_file(body, said));
    auto limit = CO_TRY(in_context("--ready-timeout", parse_duration(ready)));
    auto answer = CO_TRY(co_await api.ask("POST", "/v1/sandboxes", json::print(body)));
    if (!answer.is_object()) co_return fail(Code::corrupt, "the answer is no object");
    std::string id = CO_TRY(text_of(answer.as_object(), "id"));
    if (!at_once) CO_TRY(co_await await_ready(api, id, limit));
    bj::object made{{"id", id}, {"status", "created"}, {"timeout", told}};
    for (const auto& [name, value] : said) made[name] = value;
    output.made("Sandbox Created", made);
    co_return 0;
  }
};

}  // namespace

Task<Result<void>> await_ready(Api& api, std::string id, std::chrono::milliseconds limit) {
  auto until = std::chrono::steady_clock::now() + limit;
  while (true) {
    bj::object sandbox = CO_TRY(co_await api.get(id));
    const auto* status = sandbox.if_contains("status");
    std::string state =
        status && status->is_object() ? text_of(status->as_object(), "state").value_or("") : "";
    if (state == "Running") co_return Result<void>{};
    if (state == "Failed" || state == "Terminated")
      co_return fail(Code::wrong_state,
                     fmt::format("sandbox {} is {}; see: osb sandbox get {}", id, state, id));
    if (std::chrono::steady_clock::now() >= until)
      co_return fail(Code::timeout,
                     fmt::format("sandbox {} is {} and did not get ready in time; see: osb sandbox get {}",
                                 id, state, id));
    co_await io::sleep_for(kLook);
  }
}

void add_sandbox_create(CommandTree& tree, CLI::App& below) {
  add_server_command<Create>(tree, below, "create",
                             "make a sandbox from an image, a snapshot, a template or a file");
}

}  // namespace osb::cli
