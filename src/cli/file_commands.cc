// `osb file`: files of a sandbox, in the published client's words. Large trees are copied by `osb cp`.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/fd.h"
#include "base/strings.h"
#include "cli/server_command.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

constexpr size_t kFileLimit = size_t{2} << 30;

// "0755" and "755" are the same number of octal digits.
Result<int> parse_mode(const std::string& text) {
  auto number = parse_number<int>(text);
  if (!number || *number < 0 || *number > 7777 || text.find_first_of("89") != text.npos)
    return fail(Code::invalid_argument, "--mode takes octal digits, as in 0644");
  return *number;
}

// --mode, --owner and --group.
struct Permissions {
  std::string mode, owner, group;
  void options(CLI::App& app) {
    app.add_option("--mode", mode, "octal digits, as in 0644");
    app.add_option("--owner", owner, "who it belongs to");
    app.add_option("--group", group, "its group");
  }
  Result<bj::object> body() const {
    bj::object out;
    if (!mode.empty()) out["mode"] = TRY(parse_mode(mode));
    if (!owner.empty()) out["owner"] = owner;
    if (!group.empty()) out["group"] = group;
    return out;
  }
};

std::string paths_query(const std::vector<std::string>& paths) {
  std::string out;
  for (const std::string& path : paths) out += (out.empty() ? "?path=" : "&path=") + percent_encode(path);
  return out;
}

Result<std::string> read_all_of(int fd) {
  std::string out, buffer(1 << 16, '\0');
  while (true) {
    ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("read");
    if (n == 0) return out;
    if (out.size() + static_cast<size_t>(n) > kFileLimit)
      return fail(Code::too_large, "more than 2 GiB at once");
    out.append(buffer.data(), static_cast<size_t>(n));
  }
}

struct Cat : ServerCommand {
  std::string id, path, encoding;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("PATH", path, "the file")->required();
    app.add_option("--encoding", encoding, "accepted: bytes are printed as they are");
    output.options(app, {"raw"});
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    auto answer = CO_TRY(
        co_await api.fetch(api.execd(found, "/files/download?path=" + percent_encode(path)), kFileLimit));
    CO_TRY(write_all(STDOUT_FILENO, answer.body));
    co_return 0;
  }
};

struct Write : ServerCommand {
  std::string id, path, content, encoding;
  CLI::Option* given = nullptr;
  Permissions permissions;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("PATH", path, "the file")->required();
    given = app.add_option("-c,--content", content, "what to write; without it standard input is");
    app.add_option("--encoding", encoding, "accepted: bytes are written as they are");
    permissions.options(app);
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    // A file that is new gets the mode that the published client gives it.
    UploadedFile file{
        .path = path, .mode = 755, .owner = permissions.owner, .group = permissions.group, .bytes = content};
    if (!permissions.mode.empty()) file.mode = CO_TRY(parse_mode(permissions.mode));
    if (given->count() == 0) file.bytes = CO_TRY(read_all_of(STDIN_FILENO));
    std::string found = CO_TRY(co_await reach(api, id));
    CO_TRY(co_await api.upload_as_user(found, std::move(file)));
    output.ok("Written: " + path);
    co_return 0;
  }
};

struct Upload : ServerCommand {
  std::string id, local, remote;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("LOCAL_PATH", local, "a file of this machine")->required()->check(CLI::ExistingFile);
    app.add_option("REMOTE_PATH", remote, "what it becomes in the sandbox")->required();
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    UploadedFile file{
        .path = remote, .mode = 755, .owner = "", .group = "", .bytes = CO_TRY(read_file(local, kFileLimit))};
    std::string found = CO_TRY(co_await reach(api, id));
    CO_TRY(co_await api.upload_as_user(found, std::move(file)));
    output.ok(fmt::format("Uploaded: {} → {}", local, remote));
    co_return 0;
  }
};

struct Download : ServerCommand {
  std::string id, remote, local;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("REMOTE_PATH", remote, "a file of the sandbox")->required();
    app.add_option("LOCAL_PATH", local, "what it becomes here; its directory is made")->required();
    output.options(app);
  }
  // Complete or not at all, except where there is something that is no file: a device, a pipe.
  Result<void> keep(const std::string& bytes) const {
    std::error_code error;
    std::filesystem::path to(local);
    if (auto status = std::filesystem::status(to, error); std::filesystem::exists(status)) {
      if (std::filesystem::is_directory(status))
        return fail(Code::invalid_argument, "LOCAL_PATH is a directory; name a file");
      if (!std::filesystem::is_regular_file(status)) return write_file(local, bytes);
    }
    if (to.has_parent_path()) std::filesystem::create_directories(to.parent_path(), error);
    if (error) return fail_errno("make the directory of LOCAL_PATH", error.value());
    std::string staged = local + ".osb-" + std::to_string(::getpid());
    {
      Fd fd(::open(staged.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (!fd.valid()) return fail_errno("make LOCAL_PATH");
      if (auto written = write_all(fd.get(), bytes); !written) {
        ::unlink(staged.c_str());
        return written;
      }
    }
    if (::rename(staged.c_str(), local.c_str()) == 0) return {};
    int why = errno;
    ::unlink(staged.c_str());
    return fail_errno("rename to LOCAL_PATH", why);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    auto answer = CO_TRY(
        co_await api.fetch(api.execd(found, "/files/download?path=" + percent_encode(remote)), kFileLimit));
    CO_TRY(keep(answer.body));
    output.ok(fmt::format("Downloaded: {} → {}", remote, local));
    co_return 0;
  }
};

// Several paths, one line about each.
struct Paths : ServerCommand {
  std::string id;
  std::vector<std::string> paths;
  void arguments(CLI::App& app) {
    sandbox_argument(app, id);
    app.add_option("PATH", paths, "what of the sandbox")->required();
    output.options(app);
  }
  void done(std::string_view title, std::string_view what) const {
    bj::array rows;
    for (const std::string& path : paths) rows.push_back(bj::object{{"path", path}, {"status", what}});
    output.rows(title, {"path", "status"}, rows, rows);
  }
};

struct Rm : Paths {
  void options(CLI::App& app) override { arguments(app); }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    CO_TRY(co_await api.ask("DELETE", api.execd(found, "/files" + paths_query(paths))));
    done("Deleted Files", "deleted");
    co_return 0;
  }
};

struct Rmdir : Paths {
  void options(CLI::App& app) override { arguments(app); }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    CO_TRY(co_await api.ask("DELETE", api.execd(found, "/directories" + paths_query(paths))));
    done("Removed Directories", "removed");
    co_return 0;
  }
};

struct Mkdir : Paths {
  Permissions permissions;
  void options(CLI::App& app) override {
    arguments(app);
    permissions.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    bj::object each = CO_TRY(permissions.body()), body;
    if (!each.contains("mode")) each["mode"] = 755;
    for (const std::string& path : paths) body[path] = each;
    std::string found = CO_TRY(co_await reach(api, id));
    CO_TRY(co_await api.ask("POST", api.execd(found, "/directories"), json::print(body)));
    done("Created Directories", "created");
    co_return 0;
  }
};

struct Mv : ServerCommand {
  std::string id, from, to_path;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("SOURCE", from, "what to move")->required();
    app.add_option("DESTINATION", to_path, "what it becomes")->required();
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    bj::array body{bj::object{{"src", from}, {"dest", to_path}}};
    CO_TRY(co_await api.ask("POST", api.execd(found, "/files/mv"), json::print(body)));
    output.ok(fmt::format("Moved: {} → {}", from, to_path));
    co_return 0;
  }
};

struct Chmod : ServerCommand {
  std::string id, path;
  Permissions permissions;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("PATH", path, "the file or directory")->required();
    permissions.options(app);
    app.get_option("--mode")->required();
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    bj::object body{{path, CO_TRY(permissions.body())}};
    std::string found = CO_TRY(co_await reach(api, id));
    CO_TRY(co_await api.ask("POST", api.execd(found, "/files/permissions"), json::print(body)));
    output.ok("Permissions set: " + path);
    co_return 0;
  }
};

struct Replace : ServerCommand {
  std::string id, path, before, after;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("PATH", path, "the file")->required();
    app.add_option("--old", before, "the text to look for")->required();
    app.add_option("--new", after, "what to put in its place")->required();
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    bj::object body{{path, bj::object{{"old", before}, {"new", after}}}};
    std::string found = CO_TRY(co_await reach(api, id));
    CO_TRY(co_await api.ask("POST", api.execd(found, "/files/replace"), json::print(body)));
    output.ok("Replaced in: " + path);
    co_return 0;
  }
};

bj::object file_info(const bj::value& answer) {
  bj::value renamed = in_snake_case(answer);
  if (!renamed.is_object()) return {};
  bj::object out = renamed.as_object();
  if (const auto* type = out.if_contains("type")) out["entry_type"] = *type;
  return only(out, {"path", "entry_type", "mode", "owner", "group", "size", "modified_at", "created_at"});
}

struct Search : ServerCommand {
  std::string id, path, pattern;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("PATH", path, "where to look, all the way down")->required();
    app.add_option("-p,--pattern", pattern, "the names, as in '*.py'")->required();
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    std::string route =
        fmt::format("/files/search?path={}&pattern={}", percent_encode(path), percent_encode(pattern));
    auto answer = CO_TRY(co_await api.ask("GET", api.execd(found, route)));
    bj::array rows;
    if (answer.is_array())
      for (const bj::value& one : answer.as_array()) rows.push_back(file_info(one));
    output.rows("Search Results", {"path", "size", "owner"}, rows, rows);
    co_return 0;
  }
};

struct Info : Paths {
  void options(CLI::App& app) override { arguments(app); }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    auto answer = CO_TRY(co_await api.ask("GET", api.execd(found, "/files/info" + paths_query(paths))));
    bj::array rows;
    for (const std::string& path : paths) {
      const auto* one = answer.is_object() ? answer.as_object().if_contains(path) : nullptr;
      if (one) rows.push_back(file_info(*one));
    }
    output.rows("Path Info", {"path", "size", "mode", "owner", "group", "created_at", "modified_at"}, rows,
                rows);
    co_return 0;
  }
};

}  // namespace

void add_file(CommandTree& tree) {
  CLI::App& file = tree.group("file", "read, write, find and move files of a sandbox");
  add_server_command<Cat>(tree, file, "cat", "print a file");
  add_server_command<Write>(tree, file, "write", "write a file");
  add_server_command<Upload>(tree, file, "upload", "a file of this machine into the sandbox");
  add_server_command<Download>(tree, file, "download", "a file of the sandbox onto this machine");
  add_server_command<Rm>(tree, file, "rm", "remove files");
  add_server_command<Rmdir>(tree, file, "rmdir", "remove directories with everything in them");
  add_server_command<Mkdir>(tree, file, "mkdir", "make directories with their parents");
  add_server_command<Mv>(tree, file, "mv", "move a file or directory");
  add_server_command<Chmod>(tree, file, "chmod", "set mode, owner and group");
  add_server_command<Replace>(tree, file, "replace", "replace a text in a file");
  add_server_command<Search>(tree, file, "search", "find files by their names");
  add_server_command<Info>(tree, file, "info", "what paths are");
}

}  // namespace osb::cli
