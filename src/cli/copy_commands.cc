// `osb cp`: files and directories between this machine and a sandbox, through the sandbox's own daemon: the
// image needs no program for it.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/fd.h"
#include "base/strings.h"
#include "cli/server_command.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
namespace fs = std::filesystem;

constexpr size_t kFileLimit = size_t{1} << 30;
constexpr size_t kBatchBytes = 8 << 20;
constexpr size_t kBatchFiles = 256;
constexpr int kDeepest = 64;

struct Side {
  std::string sandbox;  // "" means this machine
  std::string path;
};

// "NAME:PATH" is in a sandbox; a path with a slash before the colon is a file of this machine.
Side side_of(const std::string& text) {
  size_t colon = text.find(':');
  if (colon == text.npos || colon == 0 || text.find('/') < colon) return {"", text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

int octal_digits(mode_t mode) { return parse_number<int>(fmt::format("{:o}", mode & 07777)).value_or(644); }

mode_t mode_of(int64_t digits) {
  return static_cast<mode_t>(std::strtoul(std::to_string(digits).c_str(), nullptr, 8)) & 0777;
}

// What a path of the sandbox is: "file", "directory", ..., "" when there is nothing.
Task<Result<std::string>> kind_of(Api& api, std::string id, std::string path) {
  auto answer = co_await api.ask("GET", api.execd(id, "/files/info?path=" + percent_encode(path)));
  if (!answer && answer.error().code == Code::not_found) co_return std::string();
  if (!answer) co_return std::unexpected(answer.error());
  json::Issues ignored;
  co_return json::Field::root(*answer, ignored, "answer")[path]["type"].string().value_or("file");
}

struct Copy : ServerCommand {
  std::string from, to_text;
  size_t left_out = 0;  // links, devices and the like

  RawConnection::Short short_server() const override { return RawConnection::Short::yes; }
  void options(CLI::App& app) override {
    app.add_option("SOURCE", from, "a file or directory: PATH, or ID:PATH in a sandbox")->required();
    app.add_option("TARGET", to_text, "where it goes: PATH or ID:PATH; into it when that is a directory")
        ->required();
    app.footer(
        "One of the two is in a sandbox. Directories are copied with everything in them. Links and devices "
        "are left "
        "out,\nand counted. Files above 1 GiB: tar c FILE | osb exec -i ID -- tar x");
  }

  // In

  struct Batch {
    std::vector<UploadedFile> files;
    size_t bytes = 0;
  };
  static Task<Result<void>> send(Api& api, std::string id, Batch& batch) {
    if (!batch.files.empty()) CO_TRY(co_await api.upload_files(id, std::move(batch.files)));
    batch = {};
    co_return Result<void>();
  }
  static Task<Result<void>> add(Api& api, std::string id, Batch& batch, std::string local,
                                std::string remote) {
    Fd fd(::open(local.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) co_return fail_errno("open " + local);
    struct stat info{};
    if (::fstat(fd.get(), &info) < 0) co_return fail_errno("stat " + local);
    UploadedFile file{.path = remote,
                      .mode = octal_digits(info.st_mode),
                      .owner = "",
                      .group = "",
                      .bytes = CO_TRY(in_context(local, read_all(fd.get(), kFileLimit)))};
    batch.bytes += file.bytes.size();
    batch.files.push_back(std::move(file));
    if (batch.bytes < kBatchBytes && batch.files.size() < kBatchFiles) co_return Result<void>();
    co_return co_await send(api, id, batch);
  }
  Task<Result<void>> upload_directory(Api& api, std::string id, Batch& batch, std::string local,
                                      std::string remote, int depth) {
    if (depth > kDeepest) co_return fail(Code::too_large, "directories are nested too deep");
    std::error_code error;
    auto status = fs::status(local, error);
    bj::object body{{remote, bj::object{{"mode", octal_digits(static_cast<mode_t>(status.permissions()))}}}};
    CO_TRY(co_await api.ask_execd(id, "POST", "/directories", json::print(body)));
    std::vector<fs::directory_entry> entries;
    for (fs::directory_iterator at(local, error), end; !error && at != end; at.increment(error))
      entries.push_back(*at);
    if (error) co_return fail_errno("read " + local, error.value());
    for (const fs::directory_entry& one : entries) {
      std::string name = remote + "/" + one.path().filename().string();
      auto kind = one.symlink_status(error).type();
      if (kind == fs::file_type::directory)
        CO_TRY(co_await upload_directory(api, id, batch, one.path(), name, depth + 1));
      else if (kind == fs::file_type::regular)
        CO_TRY(co_await add(api, id, batch, one.path(), name));
      else
        ++left_out;
    }
    co_return Result<void>();
  }
  Task<Result<void>> copy_in(Api& api, std::string id, std::string local, std::string remote) {
    std::error_code error;
    auto status = fs::status(local, error);
    if (!fs::exists(status)) co_return fail(Code::not_found, "SOURCE is not there");
    bool into =
        remote.empty() || remote.ends_with('/') || CO_TRY(co_await kind_of(api, id, remote)) == "directory";
    while (remote.size() > 1 && remote.ends_with('/')) remote.pop_back();
    std::string name = fs::path(local.ends_with('/') ? local.substr(0, local.size() - 1) : local).filename();
    if (into && name != ".") remote = (remote == "/" ? "" : remote) + "/" + name;
    Batch batch;
    if (fs::is_directory(status))
      CO_TRY(co_await upload_directory(api, id, batch, local, remote, 0));
    else
      CO_TRY(co_await add(api, id, batch, local, remote));
    co_return co_await send(api, id, batch);
  }

  // Out

  static Task<Result<void>> download_file(Api& api, std::string id, std::string remote, std::string local,
                                          mode_t mode) {
    auto bytes = CO_TRY(co_await api.download(id, remote, kFileLimit));
    // Names come from the sandbox: never through a link that is there.
    Fd fd(::open(local.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd.valid()) co_return fail_errno("write " + local);
    co_return in_context(local, write_all(fd.get(), bytes));
  }
  Task<Result<void>> download_directory(Api& api, std::string id, std::string remote, std::string local,
                                        int depth) {
    if (depth > kDeepest) co_return fail(Code::too_large, "directories are nested too deep");
    if (::mkdir(local.c_str(), 0777) < 0 && errno != EEXIST) co_return fail_errno("make " + local);
    auto listed =
        CO_TRY(co_await api.ask_execd(id, "GET", "/directories/list?depth=1&path=" + percent_encode(remote)));
    if (!listed.is_array()) co_return fail(Code::corrupt, "the answer is no list");
    for (const bj::value& one : listed.as_array()) {
      json::Issues ignored;
      auto field = json::Field::root(one, ignored, "entry");
      std::string path = field["path"].string().value_or(""), name = path.substr(path.rfind('/') + 1);
      if (name.empty() || name == "." || name == ".." || path == remote) continue;
      std::string kind = field["type"].string().value_or("");
      std::string target = local + "/" + name;
      if (kind == "directory")
        CO_TRY(co_await download_directory(api, id, path, target, depth + 1));
      else if (kind == "file")
        CO_TRY(co_await download_file(api, id, path, target, mode_of(field["mode"].integer().value_or(644))));
      else
        ++left_out;
    }
    co_return Result<void>();
  }
  Task<Result<void>> copy_out(Api& api, std::string id, std::string remote, std::string local) {
    std::string kind = CO_TRY(co_await kind_of(api, id, remote));
    if (kind.empty()) co_return fail(Code::not_found, "SOURCE is not there in the sandbox");
    while (remote.size() > 1 && remote.ends_with('/')) remote.pop_back();
    std::error_code error;
    if (fs::is_directory(local, error)) local += "/" + remote.substr(remote.rfind('/') + 1);
    if (kind == "directory") co_return co_await download_directory(api, id, remote, local, 0);
    co_return co_await download_file(api, id, remote, local, 0666);
  }

  Task<Result<int>> run(Api& api) override {
    Side source = side_of(from), target = side_of(to_text);
    if (source.sandbox.empty() == target.sandbox.empty())
      co_return fail(Code::invalid_argument,
                     "one of SOURCE and TARGET is ID:PATH, the other a path of this machine");
    std::string id = CO_TRY(co_await reach(api, source.sandbox + target.sandbox));
    for (Side* one : {&source, &target})
      if (!one->sandbox.empty() && !one->path.starts_with('/')) one->path = "/" + one->path;
    if (source.sandbox.empty())
      CO_TRY(co_await copy_in(api, id, source.path, target.path));
    else
      CO_TRY(co_await copy_out(api, id, source.path, target.path));
    if (left_out > 0) fmt::print(stderr, "osb: {} links or devices were left out\n", left_out);
    co_return 0;
  }
};

}  // namespace

void add_copy(CommandTree& tree) {
  add_server_command<Copy>(tree, tree.root(), "cp",
                           "copy files and directories into a sandbox, or out of it");
}

}  // namespace osb::cli
