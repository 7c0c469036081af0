#include "store/checkpointer.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "base/log.h"

namespace osb::store {

Result<std::unique_ptr<Checkpointer>> Checkpointer::start(Database& db, const std::string& path,
                                                          Locking locking) {
  std::optional<Database> own;
  if (locking == Locking::shared) own = TRY(Database::open(path));
  return std::unique_ptr<Checkpointer>(new Checkpointer(db, std::move(own), path));
}

Checkpointer::Checkpointer(Database& db, std::optional<Database> own, std::string path)
    : db_(db), own_(std::move(own)), path_(std::move(path)) {
  // Signals are the loop's business: the thread starts with all of them blocked.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  sqlite3_wal_hook(db_.handle(), after_commit, this);
}

Checkpointer::~Checkpointer() {
  sqlite3_wal_hook(db_.handle(), nullptr, nullptr);
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

int Checkpointer::after_commit(void* self, sqlite3* db, const char* name, int pages) {
  auto& checkpointer = *static_cast<Checkpointer*>(self);
  // One that nobody can share is moved here, on the loop, which waits for it: rare, and better than not at
  // all.
  if (!checkpointer.own_ && pages >= kLogPages) {
    (void)sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  }
  bool is_news = false;
  {
    MutexLock lock(checkpointer.mu_);
    bool is_long = pages >= kLogPages;
    // Most commits find that somebody else woke the thread already, and pay for nothing.
    is_news = !checkpointer.is_unsynced_ || (is_long && !checkpointer.is_long_);
    checkpointer.is_unsynced_ = true;
    checkpointer.is_long_ |= is_long;
  }
  if (is_news) checkpointer.changed_.notify_one();
  return SQLITE_OK;
}

bool Checkpointer::wait_for_commits() {
  while (!stopping_ && !is_unsynced_) changed_.wait(mu_);
  auto end = std::chrono::steady_clock::now() + kGather;
  while (!stopping_ && !is_long_ && changed_.wait_until(mu_, end)) {
  }
  return !stopping_;
}

void Checkpointer::run() {
  MutexLock lock(mu_);
  while (wait_for_commits()) {
    bool is_long = std::exchange(is_long_, false);
    is_unsynced_ = false;
    lock.unlock();
    Result<void> outcome;
    if (is_long && own_) outcome = move_pages();
    if (auto synced = sync_log(); !synced) outcome = std::move(synced);
    report(outcome);
    lock.lock();
  }
}

// Once per trouble: a disk that is broken stays so, and commits come many times a second.
void Checkpointer::report(const Result<void>& outcome) {
  if (!outcome && !is_failing_)
    log::error("the state database does not reach the disk", {{"error", outcome.error().message}});
  if (outcome && is_failing_) log::info("the state database reaches the disk again");
  is_failing_ = !outcome;
}

Result<void> Checkpointer::move_pages() {
  // Passive: neither waits for nor holds up readers and writers; what is left is moved the next time.
  int rc = sqlite3_wal_checkpoint_v2(own_->handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY) return {};
  return fail(Code::internal, std::string("checkpoint: ") + sqlite3_errstr(rc));
}

// Once: a new database was made without waiting for the disk, and without its file the log is worth nothing.
Result<void> Checkpointer::sync_file() {
  if (!own_) return {};  // no new database is opened in that way
  // Through SQLite: closing a descriptor of our own would drop its locks on the file.
  sqlite3_file* file = nullptr;
  int rc = sqlite3_file_control(own_->handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (rc == SQLITE_OK) rc = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
  if (rc != SQLITE_OK) return fail(Code::internal, std::string(sqlite3_errstr(rc)));
  std::string parent = std::filesystem::path(path_).parent_path();
  Fd directory = TRY(open_at(AT_FDCWD, parent.empty() ? "." : parent, O_RDONLY | O_DIRECTORY));
  if (::fsync(directory.get()) < 0) return fail_errno("sync " + parent);
  return {};
}

Result<void> Checkpointer::sync_log() {
  if (!log_.valid()) {
    TRY(sync_file());
    log_ = TRY(open_at(AT_FDCWD, path_ + "-wal", O_RDONLY | O_NOFOLLOW));
  }
  if (::fdatasync(log_.get()) < 0) return fail_errno("sync " + path_ + "-wal");
  return {};
}

}  // namespace osb::store
