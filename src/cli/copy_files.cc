#include "cli/copy_files.h"

#include <boost/json/object.hpp>

#include "base/sha256.h"
#include "base/strings.h"
#include "cli/path_pattern.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using Kind = TreeEntry::Kind;

constexpr size_t kMostItems = 200'000;
constexpr size_t kDeepest = 200;
constexpr size_t kBatchBytes = 8 << 20;
constexpr size_t kBatchFiles = 200;

std::string below(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

// As the file API reads it: octal digits as a decimal number.
int digits_of(unsigned mode) {
  return static_cast<int>((mode >> 6 & 7) * 100 + (mode >> 3 & 7) * 10 + (mode & 7));
}

Task<Result<void>> add_directory(FileTree& tree, std::string from, std::string to, size_t depth,
                                 CopyPlan& plan) {
  if (depth > kDeepest) co_return fail(Code::too_large, from + ": directories are nested too deeply");
  auto entries = CO_TRY(co_await tree.list(from));
  for (const TreeEntry& entry : entries) {
    std::string path = below(from, entry.name), target = below(to, entry.name);
    bool hidden = tree.hides(path);
    // What is in a hidden directory may be seen all the same; such a directory comes with its first file.
    if (hidden && entry.kind != Kind::directory) continue;
    if (entry.kind == Kind::other)
      co_return fail(Code::unsupported, path + " is neither a file nor a directory nor a link");
    if (!hidden) plan.items.push_back({path, target, entry.kind, entry.mode, entry.size});
    if (plan.items.size() > kMostItems) co_return fail(Code::too_large, "more than 200,000 files to copy");
    if (entry.kind == Kind::directory) CO_TRY(co_await add_directory(tree, path, target, depth + 1, plan));
  }
  co_return Result<void>();
}

// The paths that a pattern stands for, name by name.
Task<Result<std::vector<std::string>>> match(FileTree& tree, std::string pattern) {
  std::vector<std::string> paths = {""};
  for (std::string_view name : split(pattern, '/')) {
    std::vector<std::string> next;
    for (const std::string& path : paths) {
      if (!has_wildcard(name)) {
        next.push_back(below(path, std::string(name)));
        continue;
      }
      auto here = CO_TRY(co_await tree.find(path));
      if (!here || here->kind != Kind::directory) continue;
      auto entries = CO_TRY(co_await tree.list(path));
      for (const TreeEntry& entry : entries) {
        if (matches_name(name, entry.name)) next.push_back(below(path, entry.name));
      }
    }
    paths = std::move(next);
    if (paths.size() > kMostItems) co_return fail(Code::too_large, "the pattern stands for too many files");
  }
  co_return paths;
}

Task<Result<void>> add_source(FileTree& tree, std::string path, bool named, CopyPlan& plan, size_t& found) {
  auto entry = CO_TRY(co_await tree.find(path));
  bool hidden = entry && !path.empty() && tree.hides(path);
  if (!entry || (hidden && entry->kind != Kind::directory)) {
    if (!named) co_return Result<void>();
    co_return fail(Code::not_found, path + (hidden ? " is hidden by .dockerignore" : " is not there"));
  }
  ++found;
  if (entry->kind == Kind::directory) {
    plan.is_single_file = false;
    co_return co_await add_directory(tree, path, "", 0, plan);
  }
  if (entry->kind != Kind::file)
    co_return fail(Code::unsupported, path + " is neither a file nor a directory");
  plan.items.push_back({path, entry->name, entry->kind, entry->mode, entry->size});
  co_return Result<void>();
}

Task<Result<bool>> is_directory(Api& api, std::string sandbox, std::string path) {
  SandboxTree tree(api, std::move(sandbox));
  auto found = CO_TRY(co_await tree.find(clean_path(path)));
  co_return found && found->kind == Kind::directory;
}

Task<Result<void>> make_directories(Api& api, std::string sandbox, bj::object wanted) {
  CO_TRY(co_await api.ask_execd(std::move(sandbox), "POST", "/directories", json::print(wanted)));
  co_return Result<void>();
}

}  // namespace

Task<Result<CopyPlan>> plan_copy(FileTree& tree, std::vector<std::string> sources) {
  CopyPlan plan;
  size_t found = 0;
  plan.is_single_file = true;
  for (const std::string& source : sources) {
    std::string pattern = clean_path(source);
    bool named = !has_wildcard(pattern);
    size_t before = found;
    std::vector<std::string> paths = {pattern};
    if (!named) paths = CO_TRY(co_await match(tree, pattern));
    for (const std::string& path : paths) CO_TRY(co_await add_source(tree, path, named, plan, found));
    if (found == before) co_return fail(Code::not_found, "nothing is there for " + pattern);
  }
  plan.is_single_file = plan.is_single_file && found == 1;
  co_return plan;
}

Result<void> refuse_archives(const CopyPlan& plan) {
  for (const CopyItem& item : plan.items) {
    for (std::string_view ending : {".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".txz", ".tar.zst"}) {
      if (item.from.ends_with(ending))
        return fail(Code::unsupported, "ADD does not unpack archives (" + item.from +
                                           "); COPY it and unpack it with RUN tar -xf");
    }
  }
  return {};
}

Task<Result<std::string>> digest_of(FileTree& tree, const CopyPlan& plan) {
  std::string all;
  for (const CopyItem& item : plan.items) {
    std::string contents;
    if (item.kind == Kind::file) contents = CO_TRY(co_await tree.read(item.from));
    if (item.kind == Kind::link) contents = CO_TRY(co_await tree.link_at(item.from));
    all += std::to_string(item.to.size()) + ":" + item.to + " " +
           std::to_string(static_cast<int>(item.kind)) + " " + std::to_string(item.mode) + " " +
           to_hex(sha256_digest(contents)) + "\n";
  }
  co_return to_hex(sha256_digest(all));
}

Task<Result<void>> copy_files(FileTree& tree, CopyPlan plan, CopyTarget target, Api& api,
                              std::string sandbox) {
  const std::string owner = std::to_string(target.uid), group = std::to_string(target.gid);
  std::string top = "/" + clean_path(target.path);
  bool into =
      !plan.is_single_file || target.path.ends_with('/') || CO_TRY(co_await is_directory(api, sandbox, top));
  auto path_of = [&](const CopyItem& item) { return into ? "/" + clean_path(top + "/" + item.to) : top; };
  auto permission = [&](unsigned mode) {
    return bj::object{{"owner", owner}, {"group", group}, {"mode", digits_of(target.mode.value_or(mode))}};
  };
  constexpr unsigned kPlain = 0755;
  bj::object wanted;
  if (into) wanted[top] = permission(kPlain);
  for (const CopyItem& item : plan.items) {
    if (item.kind != Kind::directory) continue;
    wanted[path_of(item)] = permission(item.mode);
    if (wanted.size() < kBatchFiles) continue;
    CO_TRY(co_await make_directories(api, sandbox, std::exchange(wanted, {})));
  }
  if (!wanted.empty()) CO_TRY(co_await make_directories(api, sandbox, std::move(wanted)));
  std::vector<UploadedFile> batch;
  size_t bytes = 0;
  for (const CopyItem& item : plan.items) {
    if (item.kind != Kind::file) continue;
    UploadedFile file{.path = path_of(item),
                      .mode = digits_of(target.mode.value_or(item.mode)),
                      .owner = owner,
                      .group = group,
                      .bytes = CO_TRY(co_await tree.read(item.from))};
    bytes += file.bytes.size();
    batch.push_back(std::move(file));
    if (bytes < kBatchBytes && batch.size() < kBatchFiles) continue;
    CO_TRY(co_await api.upload_files(sandbox, std::exchange(batch, {})));
    bytes = 0;
  }
  if (!batch.empty()) CO_TRY(co_await api.upload_files(sandbox, std::move(batch)));
  for (const CopyItem& item : plan.items) {
    if (item.kind != Kind::link) continue;
    std::string to = CO_TRY(co_await tree.link_at(item.from));
    CommandRequest what{.argv = {"ln", "-sfn", "--", std::move(to), path_of(item)},
                        .workdir = "/",
                        .timeout = std::nullopt,
                        .ids = std::pair(0U, 0U)};
    auto last = CO_TRY(
        co_await api.run(sandbox, std::move(what), [](const StreamEvent&) -> Result<void> { return {}; }));
    if (last.kind != StreamEvent::Kind::complete)
      co_return fail(Code::unsupported,
                     item.from + ": links are made by the image's own ln: " + last.detail + " " + last.text);
  }
  co_return Result<void>();
}

}  // namespace osb::cli
