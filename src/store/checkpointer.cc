#include "store/checkpointer.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "base/log.h"

namespace osb::store {

Result<std::unique_ptr<Checkpointer>> Checkpointer::start(Database& db, const std::string& path) {
  return std::unique_ptr<Checkpointer>(new Checkpointer(db, TRY(Database::open(path)), path));
}

Checkpointer::Checkpointer(Database& db, Database own, std::string path)
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
    std::lock_guard lock(mu_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

int Checkpointer::after_commit(void* self, sqlite3*, const char*, int pages) {
  auto& checkpointer = *static_cast<Checkpointer*>(self);
  bool is_news = false;
  {
    std::lock_guard lock(checkpointer.mu_);
    bool is_long = pages >= kLogPages;
    // Most commits find that somebody else woke the thread already, and pay for nothing.
    is_news = !checkpointer.is_unsynced_ || (is_long && !checkpointer.is_long_);
    checkpointer.is_unsynced_ = true;
    checkpointer.is_long_ |= is_long;
  }
  if (is_news) checkpointer.changed_.notify_one();
  return SQLITE_OK;
}

void Checkpointer::run() {
  std::unique_lock lock(mu_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || is_unsynced_; });
    changed_.wait_for(lock, kGather, [&] { return stopping_ || is_long_; });
    if (stopping_) return;
    bool is_long = std::exchange(is_long_, false);
    is_unsynced_ = false;
    lock.unlock();
    if (is_long) move_pages();
    if (auto synced = sync_log(); !synced)
      log::error("cannot sync the state database", {{"error", synced.error().message}});
    lock.lock();
  }
}

void Checkpointer::move_pages() {
  // Passive: neither waits for nor holds up readers and writers; what is left is moved the next time.
  int rc = sqlite3_wal_checkpoint_v2(own_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (rc != SQLITE_OK && rc != SQLITE_BUSY) {
    log::error("cannot checkpoint the state database", {{"error", sqlite3_errstr(rc)}});
  }
}

// Once: a new database was made without waiting for the disk, and without its file the log is worth nothing.
Result<void> Checkpointer::sync_file() {
  // Through SQLite: closing a descriptor of our own would drop its locks on the file.
  sqlite3_file* file = nullptr;
  int rc = sqlite3_file_control(own_.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
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
