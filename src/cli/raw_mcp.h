#pragma once

// `osb mcp` as options of a command. For the files that know the parser library.

#include <CLI/CLI.hpp>

#include "cli/mcp_options.h"
#include "cli/raw_connection.h"

namespace osb::cli {

struct RawMcp {
  CLI::App* mcp = nullptr;
  RawConnection to;
  McpOptions shown;
  std::string transport = "stdio", domain, protocol = "http";
  double patience = 30;
  bool proxied = false;

  void options(CLI::App& app) {
    mcp = app.add_subcommand("mcp", "sandboxes as tools for language models (Model Context Protocol)");
    to.options(*mcp);
    mcp->add_option("--domain", domain, "the same as --server");
    mcp->add_option("--protocol", protocol, "how the server is reached: http")
        ->check(CLI::IsMember({"http"}));
    mcp->add_option("--transport", transport, "stdio, or streamable-http at the path /mcp")
        ->check(CLI::IsMember({"stdio", "streamable-http"}))
        ->capture_default_str();
    mcp->add_option("--host", shown.host, "address to listen on, with HTTP")->capture_default_str();
    mcp->add_option("--port", shown.port, "port to listen on, with HTTP")
        ->check(CLI::Range(0, 65535))
        ->capture_default_str();
    mcp->add_option("--token", shown.token,
                    "what clients send as Authorization: Bearer; better in the environment")
        ->envname("OSB_MCP_TOKEN");
    mcp->add_option("--request-timeout-seconds", patience, "accepted; every call has a deadline of its own");
    mcp->add_flag("--use-server-proxy", proxied, "accepted: sandboxes are always reached through the server");
    mcp->footer(
        "With stdio a client starts it, for example: claude mcp add sandboxes -- osb mcp\n"
        "Ends with its input or with Ctrl-C. Sandboxes that it made live until their time is up.");
  }
  Result<McpOptions> read() {
    if (!domain.empty()) to.server = domain;
    shown.connection = TRY(to.read());
    shown.http = transport == "streamable-http";
    TRY(check_mcp(shown));
    return shown;
  }
};

}  // namespace osb::cli
