#include "cli/original_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ids.h"
#include "base/log.h"
#include "launcher/server_process.h"
#include "sys/directory.h"

namespace osb::cli {
namespace {

constexpr char kExpirations[] = "_expiration";
constexpr std::string_view kSuffix = ".json";
constexpr size_t kMostFiles = 20'000, kMostFile = 64 << 10, kMostBytes = 16 << 20;

// From the root on, so that a link anywhere on the way is refused as well.
Result<Fd> open_directory(const std::string& path) {
  size_t begin = path.find_first_not_of('/');
  if (begin == path.npos) return fail(Code::invalid_argument, "that is the root");
  Fd root = TRY(open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
  return open_beneath(root.get(), path.substr(begin), O_RDONLY | O_DIRECTORY);
}

// Of whoever has the directory: a name somebody gave to another's file does not show that file.
Result<std::string> read_own(int dir, const std::string& name) {
  struct stat whole{}, file{};
  Fd fd = TRY(open_beneath(dir, name, O_RDONLY | O_NONBLOCK));
  if (::fstat(dir, &whole) < 0 || ::fstat(fd.get(), &file) < 0) return fail_errno("look at " + name);
  if (!S_ISREG(file.st_mode) || file.st_uid != whole.st_uid || file.st_nlink != 1)
    return fail(Code::permission_denied, "it is no file of the directory's owner");
  return read_all(fd.get(), kMostFile);
}

using Texts = std::map<std::string, std::string>;  // by id

// What is no file of a sandbox's is left out.
enum class Unreadable { left_out, refused };

Result<Texts> read_texts(int dir, Unreadable unreadable) {
  Texts out;
  size_t bytes = 0, skipped = 0;
  auto names = TRY(sys::names_in(dir));
  if (names.size() > kMostFiles) return fail(Code::too_large, fmt::format("more than {} files", kMostFiles));
  for (const std::string& name : names) {
    if (!name.ends_with(kSuffix)) continue;
    std::string id = name.substr(0, name.size() - kSuffix.size());
    if (!is_sandbox_id(id)) continue;
    auto text = read_own(dir, name);
    if (!text && unreadable == Unreadable::refused)
      return fail(Code::invalid_argument, name + ": " + text.error().message);
    if (!text) {
      ++skipped;
      continue;
    }
    bytes += text->size();
    if (bytes > kMostBytes) return fail(Code::too_large, fmt::format("more than {} MiB", kMostBytes >> 20));
    out.emplace(std::move(id), std::move(*text));
  }
  if (skipped > 0) log::warn("files of the original server are left out", {{"files", skipped}});
  return out;
}

// Service managers start root's programs without HOME. As it is written where nobody has a home.
std::string at_home(const std::string& path) {
  if (!path.starts_with("~/")) return path;
  const struct passwd* account = ::getpwuid(::geteuid());
  return account ? account->pw_dir + path.substr(1) : path;
}

Result<Fd> sealed(const std::string& text) {
  Fd memory(::memfd_create("notes", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid()) return fail_errno("memfd_create");
  TRY(write_all(memory.get(), text));
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
    return fail_errno("seal what was read");
  return memory;
}

}  // namespace

Result<docker::OriginalNotes> read_original_files(const std::string& directory) {
  Fd dir = TRY(open_directory(directory));
  Texts metadata = TRY(read_texts(dir.get(), Unreadable::left_out)), expirations;
  auto below = open_beneath(dir.get(), kExpirations, O_RDONLY | O_DIRECTORY);
  if (!below && below.error().code != Code::not_found) return std::unexpected(std::move(below.error()));
  // An expiry that is not known any more would be the older one of the label, and end a sandbox too early.
  if (below) expirations = TRY(read_texts(below->get(), Unreadable::refused));
  docker::OriginalNotes out;
  for (const auto& [id, text] : metadata) out[id] = docker::parse_note(text, "");
  for (const auto& [id, note] : out) {
    if (!note.metadata)
      log::warn("a file of the original server makes no sense and is left out", {{"id", id}});
  }
  for (const auto& [id, text] : expirations) {
    auto expires = docker::parse_note("", text).expires;
    if (!expires)
      return fail(Code::invalid_argument, fmt::format("{}/{}.json: has no expires_at", kExpirations, id));
    out[id].expires = expires;
  }
  return out;
}

Result<Fd> hand_on_original_files(const server::Config& config) {
  const server::DockerSection& docker = config.docker;
  std::string place = at_home(docker.adopt_metadata);
  if (!config.offers("docker") || !docker.adopt || place.empty()) return Fd();
  auto notes = read_original_files(place);
  if (!notes && notes.error().code == Code::not_found) {
    log::info("the original server has kept nothing about its sandboxes", {{"adopt_metadata", place}});
    return Fd();
  }
  if (!notes) {
    // What it says may end sandboxes too early, so it is not left out.
    return fail(Code::invalid_argument,
                fmt::format("{}: docker.adopt_metadata: {}: {}; name the directory itself, which no link "
                            "leads to, repair or remove what cannot be read, or write "
                            "adopt_metadata = \"\" to leave it out",
                            config.place("docker.adopt_metadata"), place, notes.error().message));
  }
  log::info("files of the original server are read", {{"sandboxes", notes->size()}});
  return sealed(docker::print_notes(*notes));
}

Result<docker::OriginalNotes> inherited_original_notes() {
  struct stat info{};
  const int fd = launcher::kServerNotesFd;
  // Where nothing was handed on the number may be anything else by now.
  int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_WRITE) == 0 || ::fstat(fd, &info) < 0) return docker::OriginalNotes();
  Fd memory(fd);
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) return fail_errno("take over what root has read");
  // Every server has the same offset.
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (::pread(fd, text.data(), text.size(), 0) != info.st_size) return fail_errno("read what root has read");
  return docker::parse_notes(text);
}

}  // namespace osb::cli
