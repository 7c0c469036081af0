// `osb credential-vault`: secrets that a sandbox uses without seeing them, in the published client's words. A
// server without that part says so.

#include <fmt/format.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/strings.h"
#include "cli/server_command.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

constexpr size_t kFileLimit = 1 << 20;

// The egress side of a sandbox, beside execd's port.
std::string vault_path(const std::string& id, std::string_view rest = "") {
  return fmt::format("/sandboxes/{}/proxy/18080/credential-vault{}", percent_encode(id), rest);
}

struct OfVault : ServerCommand {
  std::string id;
  void print(std::string_view title, const bj::value& answer) const {
    bj::value renamed = in_snake_case(answer);
    output.record(title, renamed.is_object() ? renamed.as_object() : bj::object{{"items", renamed}});
  }
};

struct Show : OfVault {
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    print("Credential Vault", CO_TRY(co_await api.ask("GET", vault_path(found))));
    co_return 0;
  }
};

struct Send : OfVault {
  std::string file, method;
  explicit Send(std::string method) : method(std::move(method)) {}
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("--file", file, "the request as JSON; - is standard input")->required();
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string text = CO_TRY(in_context("--file", read_file(file == "-" ? "/dev/stdin" : file, kFileLimit)));
    auto body = CO_TRY(in_context("--file", json::parse(text)));
    if (!body.is_object()) co_return fail(Code::invalid_argument, "--file needs a JSON object");
    std::string found = CO_TRY(co_await reach(api, id));
    print("Credential Vault", CO_TRY(co_await api.ask(method, vault_path(found), json::print(body))));
    co_return 0;
  }
};
struct Create : Send {
  Create() : Send("POST") {}
};
struct Patch : Send {
  Patch() : Send("PATCH") {}
};

struct Delete : OfVault {
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    CO_TRY(co_await api.ask("DELETE", vault_path(found)));
    output.record("Credential Vault", {{"sandbox_id", found}, {"status", "deleted"}});
    co_return 0;
  }
};

// Of credentials and of bindings alike.
struct Part : OfVault {
  std::string name, what;
  bool one;
  Part(std::string what, bool one) : what(std::move(what)), one(one) {}
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    if (one) app.add_option("NAME", name, "which one")->required();
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    std::string rest = "/" + what + (one ? "/" + percent_encode(name) : "");
    print(one ? "Metadata" : "Metadata of all", CO_TRY(co_await api.ask("GET", vault_path(found, rest))));
    co_return 0;
  }
};
struct ListCredentials : Part {
  ListCredentials() : Part("credentials", false) {}
};
struct GetCredential : Part {
  GetCredential() : Part("credentials", true) {}
};
struct ListBindings : Part {
  ListBindings() : Part("bindings", false) {}
};
struct GetBinding : Part {
  GetBinding() : Part("bindings", true) {}
};

}  // namespace

void add_vault(CommandTree& tree) {
  CLI::App& vault = tree.group("credential-vault", "secrets that a sandbox uses without seeing them");
  add_server_command<Show>(tree, vault, "get", "what the vault has, without the secrets");
  add_server_command<Create>(tree, vault, "create", "fill the vault for the first time");
  add_server_command<Patch>(tree, vault, "patch", "change it, all or nothing");
  add_server_command<Delete>(tree, vault, "delete", "empty it");
  CLI::App& credential = tree.group("credential", "credentials of the vault", &vault);
  add_server_command<ListCredentials>(tree, credential, "list", "all of them, without the secrets");
  add_server_command<GetCredential>(tree, credential, "get", "one of them, without the secret");
  CLI::App& binding = tree.group("binding", "where credentials are used", &vault);
  add_server_command<ListBindings>(tree, binding, "list", "all of them");
  add_server_command<GetBinding>(tree, binding, "get", "one of them");
}

}  // namespace osb::cli
