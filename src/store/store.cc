#include "store/store.h"

#include <sys/statvfs.h>

#include <filesystem>

#include "base/log.h"
#include "store/migrations.h"

namespace osb::store {
namespace {

constexpr auto kTendSoon = std::chrono::seconds(1);
constexpr auto kTendLater = std::chrono::seconds(5);
constexpr auto kLockedForGood = std::chrono::seconds(3);  // more than a transaction waits for another

bool is_disk_trouble(const Error& error) {
  return error.code != Code::corrupt && error.code != Code::unsupported && error.code != Code::unavailable;
}

// SQLite makes sure of one block for each page of its index, which it maps. Where blocks are smaller than
// pages a full disk may have none for the rest of one, and the kernel ends whoever touches that (SIGBUS).
bool index_may_have_holes(const std::string& path) {
  constexpr uint64_t kPage = 4096, kIndex = 32 * 1024;
  std::string parent = std::filesystem::path(path).parent_path();
  struct statvfs disk{};
  if (::statvfs(parent.empty() ? "." : parent.c_str(), &disk) < 0 || disk.f_frsize >= kPage) return false;
  return disk.f_bavail * disk.f_frsize < 4 * kIndex;
}

// Not by another way of opening it where the usual one works: the usual one can be checkpointed on a thread.
Result<Database> open_somehow(const std::string& path, Locking& locking) {
  Result<Database> opened = fail(Code::exhausted, "no room on its disk");
  if (!index_may_have_holes(path)) opened = Database::open(path, locking);
  if (opened || !is_disk_trouble(opened.error())) return opened;
  auto exclusive = Database::open(path, Locking::exclusive);
  if (!exclusive) return opened;
  log::warn("the index of the state database cannot be beside it; keeping it in memory",
            {{"error", opened.error().message}});
  locking = Locking::exclusive;
  return exclusive;
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const std::string& path, const DatabaseOwner& owner) {
  auto files = std::make_unique<Files>(TRY(Files::open(path)));
  Locking locking = Locking::shared;
  auto store = TRY(in_context("state database " + path, finish(TRY(open_somehow(path, locking)), owner)));
  store->files_ = std::move(files);
  std::string parent = std::filesystem::path(path).parent_path();
  store->directories_.push_back(parent.empty() ? "." : parent);
  if (!owner.state_dir.empty()) store->directories_.push_back(owner.state_dir);
  auto checkpointer = Checkpointer::start(store->db_, path, locking);
  if (!checkpointer) return std::unexpected(std::move(checkpointer.error()));
  store->checkpointer_ = std::move(*checkpointer);
  store->files_->reserve();
  return store;
}

Result<std::unique_ptr<Store>> Store::open_in_memory() { return finish(TRY(Database::open_in_memory()), {}); }

Result<std::unique_ptr<Store>> Store::finish(Database db, const DatabaseOwner& owner) {
  std::unique_ptr<Store> store(new Store(std::move(db)));
  if (!owner.state_dir.empty()) TRY(check_owner(store->db_, owner));
  TRY(migrate(store->db_));
  if (!owner.state_dir.empty()) {
    auto noted = note_owner(store->db_, owner);
    if (!noted) log::warn("cannot note whose database it is", {{"error", noted.error().message}});
  }
  store->sandboxes_ = TRY(Sandboxes::open(store->db_));
  store->events_ = TRY(Events::open(store->db_));
  store->outputs_ = TRY(Outputs::open(store->db_));
  store->create_keys_ = TRY(CreateKeys::open(store->db_));
  store->snapshots_ = TRY(Snapshots::open(store->db_));
  store->pools_ = TRY(Pools::open(store->db_));
  store->backlog_.emplace(store->db_, *store->sandboxes_, *store->events_, *store->outputs_);
  store->sandboxes_->on_earlier_changes(
      [backlog = &*store->backlog_](std::string_view id) { return backlog->settle(id); });
  return store;
}

Store::~Store() {
  checkpointer_.reset();
  // Or closing would cut the log off, and with it the room that is kept for it.
  static_cast<void>(db_.execute("PRAGMA journal_size_limit=-1"));
}

Result<Transaction> Store::begin() {
  // Inside of it they could not be written, and what is to come builds on them.
  if (backlog_->size() > 0) static_cast<void>(backlog_->settle());
  return Transaction::begin(db_);
}

std::chrono::milliseconds Store::tend() {
  auto tried_at = std::chrono::steady_clock::now();
  auto settled = backlog_->settle();
  note_lock(settled ? db_.try_transaction() : settled, tried_at);
  if (!settled && !backlog_reported_) {
    log::error("what happened to sandboxes cannot be stored; it is kept in memory and tried again",
               {{"sandboxes", backlog_->size()}, {"error", settled.error().message}});
  }
  if (settled && backlog_reported_) log::info("the state database can be written again");
  backlog_reported_ = !settled;
  bool reserved = !files_ || files_->reserve();
  return settled && reserved && !locked_since_ ? kTendLater : kTendSoon;
}

// Nobody else may use the database (files.h), and no transaction of ours lasts that long. But SQLite keeps a
// lock for ever that the kernel did not let it give back (a moment without memory was enough): each attempt
// to write then waits for this process itself.
void Store::note_lock(const Result<void>& written, std::chrono::steady_clock::time_point tried_at) {
  bool locked = !written && written.error().code == Code::unavailable;
  if (!locked) locked_since_.reset();
  if (locked && !locked_since_) locked_since_ = tried_at;
  if (!is_stuck()) return;
  log::error("the state database stays locked", {{"error", written.error().message}});
  db_.set_patience({});  // until the end, which has a lot to write
}

bool Store::is_stuck() const {
  return locked_since_ && std::chrono::steady_clock::now() - *locked_since_ > kLockedForGood;
}

Result<void> Store::check_room() const {
  for (const std::string& directory : directories_) TRY(store::check_room(directory));
  return {};
}

Result<void> Store::check_writing() {
  // The version is written as it is: one page, whatever the schema.
  if (!db_.in_transaction()) TRY(db_.execute("PRAGMA user_version=" + std::to_string(migrations().size())));
  return check_room();
}

}  // namespace osb::store
