#include "cli/command_docs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/command_tree.h"

namespace osb::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

bool is_shown(const CLI::Option& option) { return !option.get_group().empty(); }

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string placeholder(const CLI::Option& option) {
  if (!takes_value(option)) return "";
  std::string type = option.get_type_name();
  return type.empty() || type == "TEXT" || type.find('{') != type.npos ||
                 type.find_first_of(" :") != type.npos
             ? "VALUE"
             : type;
}

// "-o, --output VALUE"
std::string names_of(const CLI::Option& option) {
  std::string out;
  for (const std::string& name : option.get_snames()) out += (out.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) out += (out.empty() ? "--" : ", --") + name;
  std::string value = placeholder(option);
  return value.empty() ? out : out + " " + value;
}

std::vector<const CLI::Option*> options_of(const CLI::App& app, bool positional) {
  std::vector<const CLI::Option*> out;
  for (const CLI::Option* option : app.get_options())
    if (is_shown(*option) && option->get_positional() == positional) out.push_back(option);
  return out;
}

bool takes_words(const CLI::App& app) {
  std::string path = path_of(app);
  for (const char* one : {"osb run", "osb exec", "osb shell", "osb command run", "osb command session run"})
    if (path == one) return true;
  return false;
}

std::string synopsis(const CLI::App& app) {
  std::string out = path_of(app);
  if (!options_of(app, false).empty()) out += " [OPTIONS]";
  if (!commands_of(app).empty()) out += " COMMAND";
  for (const CLI::Option* one : options_of(app, true)) {
    std::string name = one->get_name(true);
    if (one->get_items_expected_max() > 1) name += "...";
    out += one->get_required() ? " " + name : " [" + name + "]";
  }
  return out + (takes_words(app) ? " -- PROGRAM [WORD...]" : "");
}

// Text for the formatter of manual pages: nothing in it is an instruction.
std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'' || (c == '.' && (out.empty() || out.back() == '\n')))
      out += c == '\'' ? "\\(aq" : "\\&.";
    else
      out.push_back(c);
  }
  return out;
}

std::string page_of(const CLI::App& app) {
  std::string path = path_of(app), dashed = path;
  std::ranges::replace(dashed, ' ', '-');
  std::string title = dashed;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string out =
      fmt::format(".TH \"{}\" \"1\" \"\" \"OpenSandbox {}\" \"OpenSandbox\"\n", roff(title), OSB_VERSION);
  out += fmt::format(".SH NAME\n{} \\- {}\n", roff(dashed), roff(app.get_description()));
  out += fmt::format(".SH SYNOPSIS\n.B {}\n", roff(synopsis(app)));
  if (auto footer = app.get_footer(); !footer.empty())
    out += fmt::format(".SH DESCRIPTION\n.nf\n{}\n.fi\n", roff(footer));
  auto list = [&](const char* title, const std::vector<const CLI::Option*>& options, bool positional) {
    if (options.empty()) return;
    out += fmt::format(".SH {}\n", title);
    for (const CLI::Option* one : options)
      out += fmt::format(".TP\n.B {}\n{}\n", roff(positional ? one->get_name(true) : names_of(*one)),
                         roff(one->get_description()));
  };
  list("ARGUMENTS", options_of(app, true), true);
  list("OPTIONS", options_of(app, false), false);
  if (auto below = commands_of(app); !below.empty()) {
    out += ".SH COMMANDS\n";
    for (const CLI::App* one : below)
      out += fmt::format(".TP\n.B {}\n{}\n", roff(one->get_name()), roff(one->get_description()));
  }
  out +=
      ".SH EXIT STATUS\n0 when it is done, 1 when it was refused or failed, 2 for a wrong command line; the "
      "commands "
      "that run a program\nexit with its status, and with 125 when osb itself failed.\n";
  out +=
      ".SH ENVIRONMENT\n.TP\n.B OPEN_SANDBOX_DOMAIN\nHOST:PORT of the server\n.TP\n.B "
      "OPEN_SANDBOX_API_KEY\nits "
      "key\n.TP\n.B NO_COLOR\nno colours\n";
  out += ".SH FILES\n.TP\n.I ~/.opensandbox/config.toml\nsettings; see osb\\-config(1)\n";
  return out;
}

void pages_below(const CLI::App& app, std::vector<Page>& out) {
  std::string name = path_of(app);
  std::ranges::replace(name, ' ', '-');
  out.push_back({name + ".1", page_of(app)});
  for (const CLI::App* sub : commands_of(app)) pages_below(*sub, out);
}

// In a cell of a table.
std::string cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += "\\";
    if (c == '<' || c == '>' || c == '*') out += "\\";
    out.push_back(c == '\n' ? ' ' : c);
  }
  return out;
}

void rows_of(const CLI::App& app, std::string& out) {
  auto below = commands_of(app);
  if (below.empty()) {
    std::string options;
    for (const CLI::Option* one : options_of(app, false)) {
      std::string name =
          one->get_lnames().empty() ? "-" + one->get_snames().front() : "--" + one->get_lnames().front();
      if (name == "--help" || name == "--server" || name == "--api-key") continue;
      options += fmt::format("{}`{}`", options.empty() ? "" : " ", name);
    }
    std::string line = path_of(app);
    for (const CLI::Option* one : options_of(app, true))
      line += fmt::format(" {}{}", one->get_name(true), one->get_items_expected_max() > 1 ? "..." : "");
    if (takes_words(app)) line += " -- PROGRAM...";
    out += fmt::format("| `{}` | {} | {} |\n", line, cell(app.get_description()), options);
  }
  for (const CLI::App* sub : below) rows_of(*sub, out);
}

}  // namespace

std::vector<Page> manual_pages(const CLI::App& root) {
  std::vector<Page> out;
  pages_below(root, out);
  return out;
}

std::string command_document(const CLI::App& root) {
  std::string out =
      "# The command line\n\n"
      "Made by `osb man --document`; the sentences are those of `osb COMMAND --help`, and `osb man DIR` "
      "writes them as manual pages.\n\n"
      "Wherever a sandbox is wanted: its id, the beginning of it, or its name. Words after `--` belong to "
      "the program in the sandbox. "
      "Each command takes `--server HOST:PORT` and `--api-key`; before the command go\n\n";
  for (const CLI::Option* one : options_of(root, false))
    out += fmt::format("* `{}`: {}\n", names_of(*one), cell(one->get_description()));
  out +=
      "\nWhat counts: flags, then `OPEN_SANDBOX_DOMAIN` and `OPEN_SANDBOX_API_KEY`, then "
      "`~/.opensandbox/config.toml` (`osb config`), "
      "then defaults. Exit status: 0 done, 1 refused or failed, 2 a wrong command line; commands that run a "
      "program exit with its "
      "status, and with 125 when osb itself failed. `osb command run`, which scripts for the published "
      "client use, exits with 1 "
      "for every failure of the program unless `--exit-code` is given.\n\n"
      "Completion: `osb completion bash > /etc/bash_completion.d/osb` (or `zsh`, `fish`).\n\n"
      "| command | what it does | options |\n|---|---|---|\n";
  for (const CLI::App* sub : commands_of(root)) rows_of(*sub, out);
  return out;
}

}  // namespace osb::cli
