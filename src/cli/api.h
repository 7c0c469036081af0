#pragma once

// The server's HTTP interface as a client on the command line needs it. One object, one task at a time; each
// call has a deadline, and errors are ready to print.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/event_stream.h"
#include "cli/secure.h"
#include "http/client.h"
#include "http/websocket.h"
#include "io/task.h"
#include "json/decode.h"

namespace osb::cli {

using io::Task;

// The metadata by which people call a sandbox.
inline constexpr std::string_view kNameKey = "name";

struct NewSandbox {
  std::string image;
  std::vector<Variable> env;
  std::string cpu, memory;  // "" means the server's default
  std::string disk = {};
  std::string network = {};  // none, open, or targets with commas between; "" means the server's default
  std::optional<std::chrono::seconds> timeout;  // absent: lives until it is removed
  std::string shm = {};                         // size of /dev/shm; "" means the server's default
  std::vector<VolumeArgument> volumes = {};
  std::string name = {};                     // "" means none
  std::string pids = {};                     // how many processes at once; "" means the server's default
  std::vector<std::string> entrypoint = {};  // none: it only waits
  std::string runtime = {};                  // "" means the server's choice
  std::string pull_policy = {};              // always, if-not-present, never; "" means the server's
};

struct CommandRequest {
  std::vector<std::string> argv;
  std::string workdir;
  std::optional<std::chrono::milliseconds> timeout;
  std::vector<Variable> env = {};                           // over the sandbox's own
  std::optional<std::pair<uint32_t, uint32_t>> ids = {};    // user and group; absent: as the image says
  std::function<void(const std::string& id)> started = {};  // what to interrupt it by
  std::string line = {};                                    // for the sandbox's shell, instead of argv
  std::string session = {};                                 // to run the line in; "" for none
  bool background = false;                                  // the stream ends when it has started
};

// A program whose input and output are passed on byte for byte, or that has a terminal.
struct ProgramRequest {
  std::vector<std::string> argv = {};  // none: the sandbox's shell
  std::string line = {};               // for the shell, instead of argv
  std::string workdir = {};
  std::vector<Variable> env = {};
  std::optional<std::pair<uint32_t, uint32_t>> ids = {};
};

struct UploadedFile {
  std::string path;
  int mode = 644;            // octal digits as a decimal number; 0 leaves it as it is
  std::string owner, group;  // names or numbers; "" leaves it as it is
  std::string bytes;
};
// Output in the order in which it comes. An error ends the call with that error.
using OutputSink = std::function<Result<void>(const StreamEvent&)>;

class Api {
 public:
  explicit Api(Connection connection) : to_(std::move(connection)) {}

  const ServerAddress& server() const { return to_.server; }

  Task<Result<void>> health();
  Task<Result<void>> check_key();  // Code::unauthenticated when the server does not take ours
  // Hears how far the image of a new sandbox is, as PullLine::show() takes it; null when that is not known.
  using PullWatch = std::function<void(const json::bj::value& state)>;
  // The server's answer: a sandbox that runs, or one that waits for its image.
  Task<Result<json::bj::object>> begin(NewSandbox what, PullWatch watch = {});
  // Waits for that.
  Task<Result<json::bj::object>> until_started(json::bj::object sandbox, std::string image,
                                               PullWatch watch = {});
  Task<Result<json::bj::object>> create(NewSandbox what, PullWatch watch = {});  // both
  Task<Result<json::bj::object>> get(std::string id);
  Task<Result<std::vector<json::bj::value>>> list();
  // How far the pull of an image is, or the server's error; asking again joins it.
  Task<Result<json::bj::object>> pull(std::string image, std::string username, std::string password);
  // The same of a push; `target` "" is the image's own name.
  Task<Result<json::bj::object>> push(std::string image, std::string target, std::string username,
                                      std::string password);
  struct ImageList {
    std::vector<json::bj::value> stored;
    std::vector<std::string> directories;  // names of what is not stored: `host`, directories of the server
  };
  Task<Result<ImageList>> images();
  // What a create of this name would be made from, or the image whose id begins so. Code::not_found.
  Task<Result<json::bj::object>> image(std::string name);
  Task<Result<void>> remove_image(std::string name, bool force);
  Task<Result<json::bj::object>> prune_images();
  Task<Result<void>> renew(std::string id, std::string expires_at);
  Task<Result<void>> remove(std::string id);
  // Any other call of the API; null when the answer has no body.
  Task<Result<json::bj::value>> ask(std::string method, std::string target, std::string body = "");
  Task<Result<std::string>> text(std::string target);  // of a GET whose answer is no JSON

  // Has no deadline of its own: the caller cancels it, or gives the command one. The last event is complete
  // or failed.
  Task<Result<StreamEvent>> run(std::string id, CommandRequest what, OutputSink sink);
  // A cell in the default context of its language; otherwise as run(). The sink also gets the start, whose
  // text is what to interrupt, and results.
  Task<Result<StreamEvent>> run_code(std::string id, std::string language, std::string code, OutputSink sink);
  // The lines of an answer that may go on for long, as they come.
  using LineSink = std::function<Result<void>(std::string_view line)>;
  Task<Result<void>> lines(std::string target, LineSink sink);
  // What the sandbox tried to reach, a line of JSON each; `follow`: until the sandbox ends.
  Task<Result<void>> egress_log(std::string id, bool follow, LineSink sink);
  // An answer with its head; refusals are errors.
  Task<Result<http::Response>> fetch(std::string target, size_t limit);
  // The target of a route of the sandbox's own daemon, for ask() and its neighbours.
  std::string execd(const std::string& id, std::string_view route) const;
  // The bytes of a port, without HTTP around them: read and write the connection's socket, after what it has
  // buffered.
  Task<Result<http::ClientConnection>> open_port(std::string id, uint16_t port);
  // Calls of the sandbox's own daemon for files, as root of the sandbox.
  Task<Result<json::bj::value>> ask_execd(std::string id, std::string method, std::string target,
                                          std::string body = "");
  Task<Result<void>> upload_files(std::string id, std::vector<UploadedFile> files);
  // As the image's user: a whole file, or a part of it ("bytes=0-1023"); and files with their owners.
  Task<Result<std::string>> read_file(std::string id, std::string path, std::string range, size_t limit);
  Task<Result<void>> write_files(std::string id, std::vector<UploadedFile> files);
  Task<Result<std::string>> download(std::string id, std::string path, size_t limit);
  Task<Result<void>> interrupt(std::string id, std::string context);
  Task<Result<void>> interrupt_command(std::string id, std::string command);

  // The id of the one sandbox that is called so: its name, its id, or the beginning of that.
  Task<Result<std::string>> find(std::string name);
  // Before the first use of the ports of a sandbox that this object did not make: what its endpoint's answer
  // names goes with every request from here on.
  Task<Result<void>> unlock(std::string id);

  // A program with a terminal. The session outlives whoever looks at it.
  Task<Result<std::string>> new_terminal(std::string id, ProgramRequest what);
  // The connection has to outlive the WebSocket.
  Task<Result<http::WebSocket>> open_terminal(http::ClientConnection& connection, std::string id,
                                              std::string session, std::string query);
  Task<Result<http::ClientConnection>> connect();
  // `mode` in octal digits as a decimal number: 755.
  Task<Result<void>> upload(std::string id, std::string path, int mode, std::string_view bytes);
  // As whoever the sandbox's commands run as.
  Task<Result<void>> upload_as_user(std::string id, UploadedFile file);

 private:
  Error foreign(std::string_view what) const;  // it is no server of ours
  Result<json::bj::object> object_in(Result<json::bj::value> answer) const;
  // Asks again and again; never ends by itself.
  Task<> watch_pull(std::string image, PullWatch watch);
  Task<Result<json::bj::value>> pull_state(std::string image);
  Task<Result<json::bj::value>> call(std::string method, std::string target, std::string body,
                                     io::Duration limit);
  Task<Result<json::bj::value>> exchange(std::string method, std::string target, std::string body);
  Task<Result<std::string>> exchange_text(std::string method, std::string target, std::string body);
  Task<Result<http::ClientConnection>> start_stream(std::string target, std::string body,
                                                    std::string method = "POST");
  Task<Result<http::ClientConnection>> change_to_bytes(std::string id, uint16_t port);
  Task<Result<StreamEvent>> follow(http::ClientConnection connection, EventParser parser, OutputSink sink);
  Task<Result<void>> send_files(std::string target, std::vector<UploadedFile> files);
  http::RequestHead head(std::string method, std::string target) const;

  Task<Result<io::Socket>> dial();

  Connection to_;
  Security security_;
  http::Headers unlocking_;
};

// A member of a server's answer that must be there.
Result<std::string> text_of(const json::bj::object& object, std::string_view name);

}  // namespace osb::cli
