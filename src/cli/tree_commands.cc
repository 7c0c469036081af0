// Commands about the commands: completion for shells, manual pages.

#include <fcntl.h>
#include <fmt/format.h>

#include "base/fd.h"
#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/block_on.h"
#include "cli/command_docs.h"
#include "cli/command_tree.h"
#include "cli/completion.h"
#include "cli/raw_connection.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using namespace std::chrono_literals;

constexpr auto kPatience = 2s;  // of somebody who has pressed Tab

void offer(const bj::value& thing, const char* member, const std::string& beginning) {
  const auto* name = thing.is_object() ? thing.as_object().if_contains(member) : nullptr;
  if (name && name->is_string() && name->as_string().starts_with(beginning))
    fmt::print("{}\n", std::string_view(name->as_string()));
}

Task<Result<void>> offer_things(Api& api, Wanted wanted, std::string beginning) {
  if (wanted == Wanted::sandboxes) {
    for (const bj::value& one : CO_TRY(co_await api.list())) {
      offer(one, "id", beginning);
      const auto* metadata = one.is_object() ? one.as_object().if_contains("metadata") : nullptr;
      if (metadata) offer(*metadata, kNameKey.data(), beginning);
    }
  } else if (wanted == Wanted::images) {
    auto images = CO_TRY(co_await api.images());
    for (const bj::value& one : images.stored) {
      offer(one, "name", beginning);
      const auto* names = one.is_object() ? one.as_object().if_contains("names") : nullptr;
      if (!names || !names->is_array()) continue;
      for (const bj::value& name : names->as_array())
        if (name.is_string() && name.as_string().starts_with(beginning))
          fmt::print("{}\n", std::string_view(name.as_string()));
    }
    for (const std::string& name : images.directories)
      if (name.starts_with(beginning)) fmt::print("{}\n", name);
  } else if (wanted == Wanted::snapshots) {
    auto answer = CO_TRY(co_await api.ask("GET", "/v1/snapshots?pageSize=200"));
    const auto* items = answer.is_object() ? answer.as_object().if_contains("items") : nullptr;
    if (items && items->is_array())
      for (const bj::value& one : items->as_array()) offer(one, "id", beginning);
  }
  co_return Result<void>();
}

// Nobody is told what goes wrong: the line is being typed.
Task<int> offer_all(Connection connection, Wanted wanted, std::string beginning) {
  Api api(std::move(connection));
  (void)co_await io::with_deadline(kPatience, "complete", offer_things(api, wanted, std::move(beginning)));
  co_return 0;
}

struct Complete {
  RawConnection to;
  CLI::App* root = nullptr;
  void options(CLI::App& app) {
    root = app.get_parent();
    to.options(app);
    app.group("");
  }
  Result<Action> read(const CommandTree::Words& words) {
    return Action{[this, line = words.value_or(std::vector<std::string>())](const Embedded&) {
      Completion found = complete(*root, line);
      for (const std::string& word : found.words) fmt::print("{}\n", word);
      auto connection = to.read();
      if (connection && connection->occasion == Occasion::start) connection->occasion = Occasion::running;
      if (found.wanted == Wanted::nothing || !connection) return 0;
      return block_on(offer_all(std::move(*connection), found.wanted, line.back()));
    }};
  }
};

struct Script {
  std::string shell;
  void options(CLI::App& app) {
    app.add_option("SHELL", shell, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    app.footer(
        "bash: osb completion bash > /etc/bash_completion.d/osb, or: source <(osb completion bash)\n"
        "zsh:  osb completion zsh > a directory of $fpath, as _osb\n"
        "fish: osb completion fish > ~/.config/fish/completions/osb.fish");
  }
  Result<Action> read(const CommandTree::Words&) {
    return Action{[text = completion_script(shell)](const Embedded&) {
      fmt::print("{}", text);
      return 0;
    }};
  }
};

struct Manual {
  std::string directory;
  bool document = false;
  CLI::App* root = nullptr;
  void options(CLI::App& app) {
    root = app.get_parent();
    app.group("");
    app.add_option("DIR", directory, "where the pages go");
    app.add_flag("--document", document, "print docs/cli.md instead");
  }
  Result<void> write() const {
    for (const Page& page : manual_pages(*root))
      TRY(write_file(directory + "/" + page.name, page.text, O_CREAT | O_TRUNC));
    return {};
  }
  Result<Action> read(const CommandTree::Words&) {
    if (directory.empty() == !document)
      return fail(Code::invalid_argument, "name a directory, or give --document");
    return Action{[this](const Embedded&) {
      if (document) fmt::print("{}", command_document(*root));
      auto done = document ? Result<void>() : write();
      if (done) return 0;
      print_error("osb", done.error());
      return 1;
    }};
  }
};

}  // namespace

void add_tree(CommandTree& tree) {
  tree.add<Script>(tree.root(), "completion", "print what lets a shell complete commands, ids and images");
  tree.add<Complete>(tree.root(), "__complete", "internal: what may follow", CommandTree::After::words);
  tree.add<Manual>(tree.root(), "man", "internal: writes the manual pages");
}

}  // namespace osb::cli
