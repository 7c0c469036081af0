#pragma once

// Where COPY takes files from: the context of a build on this machine, or a sandbox. Paths are clean
// (clean_path()) and relative to the top.

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "cli/api.h"
#include "cli/path_pattern.h"

namespace osb::cli {

struct TreeEntry {
  enum class Kind { file, directory, link, other };
  std::string name;
  Kind kind = Kind::file;
  unsigned mode = 0;  // permission bits
  uint64_t size = 0;
};

class FileTree {
 public:
  virtual ~FileTree() = default;
  // What a path is, links on the way followed as far as they stay inside; nothing: there is none.
  virtual Task<Result<std::optional<TreeEntry>>> find(std::string path) = 0;
  virtual Task<Result<std::vector<TreeEntry>>> list(std::string directory) = 0;  // sorted by name
  virtual Task<Result<std::string>> read(std::string file) = 0;
  virtual Task<Result<std::string>> link_at(std::string path) = 0;
  virtual bool hides(const std::string&) const { return false; }  // no instruction sees it
};

// In memory at once, since one request has to carry it.
inline constexpr size_t kMostCopiedFile = 512 << 20;

// A directory of this machine. No path leads out of it, whatever links there are.
class ContextTree : public FileTree {
 public:
  static Result<ContextTree> open(const std::string& directory);

  Task<Result<std::optional<TreeEntry>>> find(std::string path) override;
  Task<Result<std::vector<TreeEntry>>> list(std::string directory) override;
  Task<Result<std::string>> read(std::string file) override;
  Task<Result<std::string>> link_at(std::string path) override;
  bool hides(const std::string& path) const override { return ignored_.ignores(path); }

  // Of a file that belongs to the build itself.
  Result<std::string> read_text(const std::string& path, size_t limit) const;

 private:
  ContextTree(Fd top, IgnoreList ignored) : top_(std::move(top)), ignored_(std::move(ignored)) {}
  Result<Fd> open_inside(const std::string& path, int flags) const;

  Fd top_;
  IgnoreList ignored_;
};

// The root of a sandbox, as its root user sees it.
class SandboxTree : public FileTree {
 public:
  SandboxTree(Api& api, std::string id) : api_(api), id_(std::move(id)) {}

  Task<Result<std::optional<TreeEntry>>> find(std::string path) override;
  Task<Result<std::vector<TreeEntry>>> list(std::string directory) override;
  Task<Result<std::string>> read(std::string file) override;
  Task<Result<std::string>> link_at(std::string path) override;

 private:
  Task<Result<std::string>> output_of(std::vector<std::string> command);

  Api& api_;
  std::string id_;
};

}  // namespace osb::cli
