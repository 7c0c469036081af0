#include "store/checkpointer.h"

#include <signal.h>

#include "base/log.h"

namespace osb::store {

Result<std::unique_ptr<Checkpointer>> Checkpointer::start(Database& db, const std::string& path) {
  return std::unique_ptr<Checkpointer>(new Checkpointer(db, TRY(Database::open(path))));
}

Checkpointer::Checkpointer(Database& db, Database own) : db_(db), own_(std::move(own)) {
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
  stopping_ = true;
  ++requests_;
  requests_.notify_one();
  thread_.join();
}

int Checkpointer::after_commit(void* self, sqlite3*, const char*, int pages) {
  if (pages < kLogPages) return SQLITE_OK;
  auto& checkpointer = *static_cast<Checkpointer*>(self);
  ++checkpointer.requests_;
  checkpointer.requests_.notify_one();
  return SQLITE_OK;
}

void Checkpointer::run() {
  uint32_t seen = 0;
  while (true) {
    requests_.wait(seen);
    seen = requests_;
    if (stopping_) return;
    // Passive: neither waits for nor holds up readers and writers; what is left is moved the next time.
    int rc = sqlite3_wal_checkpoint_v2(own_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    if (rc != SQLITE_OK && rc != SQLITE_BUSY) {
      log::error("cannot checkpoint the state database", {{"error", sqlite3_errstr(rc)}});
    }
  }
}

}  // namespace osb::store
