#pragma once

// What holds for every command of a client: flags before the command, then the environment, then a file of
// the user's, then what is usual. The names are those of the published client, so that its files keep
// working. For the files that know the parser library.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "cli/arguments.h"

namespace osb::cli {

// A server by name, as `osb context add` keeps it. It is a whole: nothing of it goes to another address.
struct Context {
  std::string domain, protocol = "http", api_key;
  TlsFiles tls;
};

struct ClientSettings {
  std::string api_key, domain = "localhost:8080", protocol = "http";
  TlsFiles tls;
  std::string context;    // whose address this is; "" for none
  bool is_named = false;  // somebody said which server: by a flag, a variable, a context or the file
  bool start_server = true;
  int64_t request_timeout = 30;  // seconds
  bool use_server_proxy = false, color = true;
  std::optional<std::string> default_image, default_timeout;
  std::string config_path;
  bool config_file_exists = false;
  std::map<std::string, Context> contexts = {};
  std::string chosen_context = {};  // by `osb context use`
};

// Of the root: `--domain` and its neighbours.
void add_client_options(CLI::App& root);

// For any command below the root, after parsing. The first of these says which server it is: the command's
// own --server, --domain, --context, OPEN_SANDBOX_DOMAIN, OPEN_SANDBOX_CONTEXT, the context in use, the
// file's [connection].
enum class Addressed { yes, no };  // by the command's own --server
Result<ClientSettings> client_settings(const CLI::App& command, Addressed addressed = Addressed::no);

// For a command with its own --server and --api-key; "" where they were not given.
Result<Connection> connection_for(const CLI::App& command, const std::string& server, const std::string& key);

}  // namespace osb::cli
