#pragma once

// The command line of `osb`, as values. The only file that knows the parser library is arguments.cc.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/values.h"

namespace osb::cli {

struct Embedded;

// Of an https:// server, as paths; "" means none.
struct TlsFiles {
  std::string authority = {};              // whose certificates are believed besides the system's
  std::string certificate = {}, key = {};  // who we are, for a server that asks
};

// What to do when nobody answers at the usual address (occasion.h): nothing, use a server for the occasion
// that runs, or start one.
enum class Occasion { none, running, start };

struct Connection {
  ServerAddress server;
  std::string api_key;                                       // "" sends none
  std::chrono::seconds patience = std::chrono::seconds(30);  // for an answer that needs no work
  TlsFiles tls = {};
  Occasion occasion = Occasion::none;
};

struct RunOptions {
  Connection connection;
  std::string image;
  std::vector<std::string> command;  // passed as it is, no shell in between
  std::vector<Variable> env;
  std::optional<std::chrono::milliseconds> timeout;  // of the command
  std::string cpu, memory, workdir;                  // "" means the server's default
  std::string network;                               // none, open, or what may be reached; likewise
  std::string shm;                                   // likewise
  std::string runtime;                               // which of the server's; likewise
  std::vector<VolumeArgument> volumes;
  bool keep = false;                             // leave the sandbox there afterwards
  bool input = false;                            // pass standard input on
  bool terminal = false;                         // the command has a terminal
  bool detach = false;                           // the command is the sandbox's own life; do not wait for it
  std::string name = {}, disk = {}, pids = {};   // "" means none, or the server's default
  std::optional<std::chrono::seconds> ttl = {};  // of one that is detached; absent: until it is removed
  std::optional<std::pair<uint32_t, uint32_t>> user = {};
};

struct ReplOptions {
  Connection connection;
  std::string image, language;
  std::vector<Variable> env;
  std::string cpu, memory;  // "" means the server's default
};

struct EgressLogOptions {
  Connection connection;
  std::string id;
  bool follow = false, json = false;
};

struct RmOptions {
  Connection connection;
  std::vector<std::string> ids;
  bool all = false;
};

struct DoctorOptions {
  Connection connection;
  std::string state_dir;
  bool attack = false;
  std::string config = {};  // of the server; "" means the default places
};

// Which service's images: its configuration file names the state directory.
struct ImageStore {
  std::string config;     // "" means the default places
  std::string state_dir;  // "" means the configuration's
  std::string server;     // refused by import: images are not imported through one
};

struct ImportImageOptions {
  ImageStore store;
  std::string source;              // a directory or an archive
  std::vector<std::string> names;  // none: the archive's own, else made from the source
  std::string config_file;         // JSON; "" means none
  std::vector<Variable> env, labels;
  std::optional<std::string> user, workdir;
  std::vector<std::string> entrypoint;
  std::optional<uint64_t> max_bytes, max_entries;
  bool quiet = false;
};

struct LsImagesOptions {
  ImageStore store;
  std::optional<Connection> connection;  // absent: the store of this host was named
  bool json = false;
};

// Those that go through a server.
struct PullImageOptions {
  Connection connection;
  std::string name, username, password;
  bool quiet = false;
};

struct PushImageOptions {
  Connection connection;
  std::string name, target, username, password;
  bool quiet = false;
};

struct InspectImageOptions {
  Connection connection;
  std::string name;
};

struct PruneImagesOptions {
  Connection connection;
};

struct BuildImageOptions {
  Connection connection;
  std::string context, file, name, target;  // "" means the default
  std::vector<Variable> arguments;
  std::string cpu, memory, network;  // of the steps; "" means the server's default
  bool no_cache = false, quiet = false;
};

// `osb commit` and `osb images commit`
struct CommitImageOptions {
  Connection connection;
  std::string id, name;
  bool is_snapshot = false;
  std::vector<Variable> env, labels;
  std::optional<std::string> user, workdir;
  std::vector<std::string> entrypoint, ports;
};

struct RmImagesOptions {
  ImageStore store;
  std::optional<Connection> connection;  // absent: the store of this host was named
  std::vector<std::string> names;
  bool force = false;
};

// `osb snapshot`, `osb fork` and `osb rollback`
struct SnapshotOptions {
  enum class What { create, list, remove, fork, rollback, diff } what = What::list;
  Connection connection;
  std::string sandbox = {};           // create, fork, rollback, diff
  std::string name = {};              // create; "" means none
  std::vector<std::string> ids = {};  // remove; of rollback the one
  int64_t count = 1;                  // fork
  bool json = false;                  // list
};

// `osb volumes`
struct VolumeOptions {
  Connection connection;
  std::vector<std::string> names = {};  // to be removed; none: all are listed
  bool json = false;
};

// `osb pools`
struct PoolOptions {
  enum class What { create, list, inspect, remove } what = What::list;
  Connection connection;
  std::vector<std::string> names = {};            // create, inspect: the one
  std::string file = {};                          // create; "" makes the template of what follows
  std::string image = {}, cpu = {}, memory = {};  // "" means none, or the server's default
  int64_t buffer_min = 1, buffer_max = 2, pool_min = 0, pool_max = 50;
  bool json = false;  // list
};

// `osb exec`
struct ExecOptions {
  Connection connection;
  std::string id = {};
  std::vector<std::string> command = {};
  std::string workdir = {};
  std::optional<std::chrono::milliseconds> timeout = {};
  bool input = false, terminal = false;
  std::optional<std::pair<uint32_t, uint32_t>> user = {};
};

// `osb shell`
struct ShellOptions {
  Connection connection;
  std::string id = {};
  std::vector<std::string> command = {};  // none: a shell
  std::string workdir = {};
  std::string session = {};  // to come back to; "" for a new one
};

// `osb inspect`, `logs`, `pause`, `resume`, `renew`
struct ManageOptions {
  enum class What { inspect, logs, pause, resume, renew } what = What::inspect;
  Connection connection;
  std::string id = {};
  bool follow = false;                // logs
  std::chrono::milliseconds by = {};  // renew
};

// `osb forward`
struct Forwarding {
  uint16_t local = 0;  // 0: any
  std::string sandbox = {};
  uint16_t port = 0;
};
struct ForwardOptions {
  Connection connection;
  std::vector<Forwarding> ports = {};
};

// `osb preview`
struct PreviewOptions {
  Connection connection;
  std::string sandbox = {};
  int port = 0;
};

// `osb mcp`
struct McpOptions {
  Connection connection = {};
  bool http = false;  // else standard input and output
  std::string host = "127.0.0.1", token = {};
  uint16_t port = 8000;
};

// `osb skills`
struct SkillsOptions {
  enum class What { list, show, install, uninstall } what = What::list;
  std::string name = {}, target = {}, scope = {}, output = "table";
  bool all = false;
};

// `osb server`, started by the launcher; everything else is inherited
struct ServerRoleOptions {
  std::string host_image;  // version of the image `host` that was prepared for it
  std::string state_dir;
  std::string identity;   // of the service, as its database knows it; "" where the launcher has none
  std::string cgroups;    // without root: what they can do; see launcher/rootless.h
  bool rootless = false;  // the service was started by an ordinary user
};

// `osb image-keeper`, started by the launcher
struct ImageKeeperOptions {
  std::string state_dir;
  uint32_t service_gid = 0;
};

// `osb image-fetcher`, started by the above
struct ImageFetcherOptions {};

// `opensandbox-server`
struct ServeOptions {
  std::string config;                // "" means the default places
  std::string text = {};             // the configuration itself, instead of a file
  std::optional<int> listener = {};  // where clients connect already, instead of the configured address
};

// `osb occasion`, started by an osb that found no server
struct OccasionOptions {
  int lock = -1;  // held until it is known where the server answers
};

struct InitConfigOptions {
  std::string path;     // "" means the default place
  std::string example;  // "" means the commented skeleton
  bool force = false;
};

// The parser already knows what to print (help, version, a usage error) and how to exit.
struct PrintAndExit {
  std::string out, err;
  int status = 0;
};

// Of a command that is in the tree (command_tree.h): what to do, its options with it.
struct Action {
  std::function<int(const Embedded&)> run;
};

using Command =
    std::variant<PrintAndExit, Action, RunOptions, ReplOptions, RmOptions, DoctorOptions, ImportImageOptions,
                 LsImagesOptions, RmImagesOptions, PullImageOptions, PushImageOptions, InspectImageOptions,
                 PruneImagesOptions, BuildImageOptions, CommitImageOptions, SnapshotOptions, VolumeOptions,
                 PoolOptions, ExecOptions, ShellOptions, ManageOptions, ForwardOptions, PreviewOptions,
                 McpOptions, SkillsOptions, ServerRoleOptions, ImageKeeperOptions, ImageFetcherOptions,
                 ServeOptions, OccasionOptions, InitConfigOptions>;

Command parse_osb_arguments(int argc, const char* const* argv);
Command parse_server_arguments(int argc, const char* const* argv);

}  // namespace osb::cli
