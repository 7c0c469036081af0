// GET /files/search and GET /directories/list: answers of unknown size, sent as they are found.

#include <sys/stat.h>

#include "base/strings.h"
#include "execd/file_info.h"
#include "execd/file_routes.h"
#include "execd/glob.h"
#include "execd/paths.h"
#include "execd/tree_walk.h"

namespace osb::execd {
namespace {

// A JSON array of FileInfo objects, made piece by piece on a worker thread.
class Listing {
 public:
  using Wanted = std::function<Result<bool>(const TreeWalk::Entry&)>;
  Listing(TreeWalk walk, Wanted wanted) : walk_(std::move(walk)), wanted_(std::move(wanted)) {}

  // The next piece; "" at the end.
  Result<std::string> next() {
    constexpr size_t kPiece = 128 * 1024;
    std::string out;
    while (!done_ && out.size() < kPiece) {
      const TreeWalk::Entry* entry = walk_.next();
      if (entry && !TRY(wanted_(*entry))) continue;
      if (!entry) {
        out += empty_ ? "[]" : "]";
        done_ = true;
        break;
      }
      out += empty_ ? "[" : ",";
      empty_ = false;
      append_file_info(out, entry->path, entry->info, users_);
    }
    return out;
  }
  bool done() const { return done_; }

 private:
  TreeWalk walk_;
  Wanted wanted_;
  Users users_ = Users::load();
  bool empty_ = true, done_ = false;
};

using ListingOrError = std::expected<std::shared_ptr<Listing>, ApiError>;

ListingOrError open_search(const Core& core, const std::string& path, const std::string& pattern) {
  std::string root = TRY(resolve_path(path, core.env, core.cwd));
  struct stat info;
  if (::lstat(root.c_str(), &info) < 0) return fail_errno(root);
  auto glob = Glob::parse(pattern);
  // A broken pattern is an error only when there is something that it would have to judge.
  auto wanted = [glob](const TreeWalk::Entry& entry) -> Result<bool> {
    if (S_ISDIR(entry.info.st_mode)) return false;
    if (!glob) return std::unexpected(glob.error());
    return glob->matches(entry.name);
  };
  if (S_ISDIR(info.st_mode)) return std::make_shared<Listing>(TRY(TreeWalk::open(root, INT64_MAX)), wanted);
  return std::make_shared<Listing>(TreeWalk::single(root, info), wanted);
}

ListingOrError open_list(const Core& core, const std::string& path, int64_t depth) {
  std::string root = TRY(resolve_path(path, core.env, core.cwd));
  struct stat info;
  if (::lstat(root.c_str(), &info) < 0) return fail_errno(root);
  if (!S_ISDIR(info.st_mode)) return std::unexpected(bad_request(root + " is not a directory"));
  return std::make_shared<Listing>(TRY(TreeWalk::open(root, depth)),
                                   [](const TreeWalk::Entry&) -> Result<bool> { return true; });
}

io::Task<> send_listing(Workers& workers, std::optional<Credentials> as, std::function<ListingOrError()> open,
                        http::ResponseWriter& response) {
  auto listing = co_await workers.run(as, std::move(open));
  if (!listing) co_return co_await reply_error(response, listing.error());
  std::shared_ptr<Listing> items = *listing;
  auto first = co_await workers.run(as, [items] { return items->next(); });
  if (!first) co_return co_await reply_error(response, ApiError(first.error()));
  if (items->done()) co_return co_await reply_json(response, std::move(*first));
  http::Headers headers{{"Content-Type", "application/json; charset=utf-8"}};
  if (!co_await response.start(200, std::move(headers), std::nullopt)) co_return;
  for (auto piece = std::move(first); !piece || !piece->empty();
       piece = co_await workers.run(as, [items] { return items->next(); })) {
    if (!piece) co_return response.abort();
    if (!co_await response.write(*piece)) co_return;
  }
  co_await response.finish();
}

}  // namespace

io::Task<> FileRoutes::search(http::Request& request, http::ResponseWriter& response) {
  http::Query query(request.head.query());
  std::string path = query.get("path").value_or("");
  if (path.empty()) {
    co_return co_await reply_error(response,
                                   bad_request("the query parameter path is missing", codes::kMissingQuery));
  }
  std::string pattern = query.get("pattern").value_or("");
  if (pattern.empty()) pattern = "**";
  auto as = identity(request);
  if (!as) co_return co_await reply_error(response, as.error());
  co_await send_listing(
      workers_, *as, [core = &core_, path, pattern] { return open_search(*core, path, pattern); }, response);
}

io::Task<> FileRoutes::list(http::Request& request, http::ResponseWriter& response) {
  http::Query query(request.head.query());
  std::string path = query.get("path").value_or("");
  if (path.empty()) {
    co_return co_await reply_error(response,
                                   bad_request("the query parameter path is missing", codes::kMissingQuery));
  }
  int64_t depth = 1;
  if (auto given = query.get("depth"); given && !given->empty()) {
    auto parsed = parse_number<int64_t>(*given);
    if (!parsed || *parsed < 0)
      co_return co_await reply_error(response, bad_request("depth must be a number, 0 or more"));
    depth = *parsed;
  }
  auto as = identity(request);
  if (!as) co_return co_await reply_error(response, as.error());
  co_await send_listing(
      workers_, *as, [core = &core_, path, depth] { return open_list(*core, path, depth); }, response);
}

}  // namespace osb::execd
