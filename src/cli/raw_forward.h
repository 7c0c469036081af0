#pragma once

// `osb forward` and `osb preview` as options of a command. For the files that know the parser library.

#include <CLI/CLI.hpp>

#include "cli/forward.h"
#include "cli/raw_connection.h"

namespace osb::cli {

struct RawForward {
  CLI::App *forward = nullptr, *preview = nullptr;
  RawConnection to_forward, to_preview;
  std::vector<std::string> ports;
  PreviewOptions shown;

  void options(CLI::App& app) {
    forward = app.add_subcommand("forward", "make a port of a sandbox a port of this machine");
    to_forward.options(*forward);
    forward
        ->add_option("LOCAL:ID:PORT", ports, "what to forward; LOCAL 0 is any free port, none the same one")
        ->required();
    preview =
        app.add_subcommand("preview", "print the address under which a browser sees a port of a sandbox");
    to_preview.options(*preview);
    preview->add_option("ID", shown.sandbox, "the sandbox")->required();
    preview->add_option("PORT", shown.port, "where the program in it listens")
        ->required()
        ->check(CLI::Range(1, 65535));
  }
  bool parsed() const { return forward->parsed() || preview->parsed(); }
  Result<Command> read() {
    if (preview->parsed()) {
      shown.connection = TRY(to_preview.read());
      return Command(shown);
    }
    ForwardOptions options{TRY(to_forward.read()), {}};
    for (const std::string& text : ports) options.ports.push_back(TRY(parse_forwarding(text)));
    return Command(std::move(options));
  }
};

}  // namespace osb::cli
