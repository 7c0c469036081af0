// Snapshots that become images: of a sandbox as it is now, or of one that was kept.

#include "base/log.h"
#include "sandbox/failures.h"
#include "server/image_keeper.h"
#include "server/snapshots.h"

namespace osb::server {

using sandbox::refuse;
using sandbox::Snapshot;
using sandbox::SnapshotState;

namespace {

sandbox::Failure no_images(const runtime::Runtime& runtime) {
  return sandbox::unsupported_by_runtime(
      Error{.code = Code::unsupported, .message = kept_elsewhere(runtime)});
}

}  // namespace

// Goes on when its client goes away.
struct Snapshots::Committing {
  explicit Committing(const io::Executor& executor) : done(executor) {}
  Principal who = {};
  CommitSource source = {};
  runtime::ImageCommit what = {};
  Outcome<std::string> outcome = std::string();
  io::Event done;
};

Task<Outcome<std::string>> Snapshots::commit(Principal who, CommitSource source, runtime::ImageCommit what) {
  auto committing = std::make_shared<Committing>(executor_);
  committing->who = std::move(who);
  committing->source = std::move(source);
  committing->what = std::move(what);
  tasks_.spawn(commit_job(committing));
  co_await committing->done.wait();
  co_return std::move(committing->outcome);
}

Task<> Snapshots::commit_job(std::shared_ptr<Committing> committing) {
  committing->outcome = committing->source.sandbox.empty() ? co_await commit_snapshot(*committing)
                                                           : co_await commit_sandbox(*committing);
  committing->done.set();
}

Task<Outcome<std::string>> Snapshots::commit_snapshot(Committing& committing) {
  Snapshot row = CO_TRY(co_await get(committing.who, committing.source.snapshot));
  // Also keeps it from being deleted meanwhile.
  sandbox::CreateRequest request;
  request.snapshot = row.id;
  Use use = CO_TRY(co_await find_base(committing.who, request));
  co_return co_await commit_now(std::move(row), std::move(committing.what));
}

Task<Outcome<std::string>> Snapshots::commit_sandbox(Committing& committing) {
  CO_TRY(co_await find_source(committing.who, committing.source.sandbox));
  auto guard = co_await lifecycle_.hold(committing.source.sandbox);
  sandbox::SandboxPtr source = CO_TRY(co_await find_source(committing.who, committing.source.sandbox));
  runtime::ImageLibrary* library = runtimes_.of(source->runtime).images();
  // Before anything is captured for it, which stops the sandbox.
  if (!library) co_return refuse(no_images(runtimes_.of(source->runtime)));
  auto free = library->check_name(committing.what.name, source->owner);
  if (!free) co_return refuse(sandbox::image_commit_failed(free.error()));
  Passing passing = CO_TRY(co_await insert_passing(*source, "For an image."));
  auto kept =
      co_await capture_and_keep(passing.row, std::move(guard), source->handle, &runtime::Runtime::keep);
  Outcome<std::string> made = std::string();
  if (kept)
    made = co_await commit_now(passing.row, std::move(committing.what));
  else
    made = refuse(sandbox::snapshot_failed(kept.error()));
  // What the image uses of it stays with the image.
  tasks_.spawn(forget_passing(std::move(passing)));
  co_return made;
}

Task<Outcome<std::string>> Snapshots::commit_now(Snapshot row, runtime::ImageCommit what) {
  runtime::ImageLibrary* library = runtimes_.of(row.runtime).images();
  if (!library) co_return refuse(no_images(runtimes_.of(row.runtime)));
  what.snapshot = row.id;
  what.owner = row.owner;
  what.base = row.base.image;
  auto made = co_await library->commit(std::move(what));
  if (!made) {
    log::warn("image not committed",
              {{"snapshot", row.id}, {"owner", row.owner}, {"error", made.error().message}});
    co_return refuse(sandbox::image_commit_failed(made.error()));
  }
  log::info("image committed", {{"image", *made}, {"snapshot", row.id}, {"owner", row.owner}});
  co_return std::move(*made);
}

}  // namespace osb::server
