#include "store/database.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

namespace osb::store {
namespace {

// Results come with SQLite's extended codes, of which the low byte is the kind. Why the kernel refused is
// asked for only where SQLite has just asked the kernel; elsewhere the answer would be an older error's.
std::unexpected<Error> fail_sqlite(std::string_view what, sqlite3* db, int rc) {
  std::string text = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
  Error error{Code::internal, 0, std::string(what) + ": " + text};
  switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:  // a lock for reading that was tried for a hundred times
      error.code = Code::unavailable;
      break;
    case SQLITE_FULL:
      error.code = Code::exhausted;
      error.sys_errno = ENOSPC;
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      error.code = Code::corrupt;
      break;
    case SQLITE_READONLY:
      error.code = Code::permission_denied;
      error.sys_errno = EROFS;
      break;
    case SQLITE_IOERR:
      error.sys_errno = EIO;
      [[fallthrough]];
    case SQLITE_CANTOPEN:
      if (int refused = db ? sqlite3_system_errno(db) : 0; refused != 0) {
        error.code = code_from_errno(refused);
        error.sys_errno = refused;
        error.message += " (" + errno_text(refused) + ")";
      }
      break;
    default:
      break;
  }
  return std::unexpected(std::move(error));
}

// A log that was full goes back to this size, which is also what is reserved for it on the disk (files.h).
static_assert(kLogBytes == 4194304, "as in the pragma below");

constexpr std::chrono::milliseconds kPatience(2000);

// The cache is small: the server's whole resident memory is budgeted, rows that are in use are kept as
// objects (sandboxes.h), and what SQLite reads again comes from the kernel's memory.
constexpr const char* kPragmas =
    "PRAGMA synchronous=OFF;"  // the next one writes only into a new database, where there is nothing to lose
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=NORMAL;"
    "PRAGMA foreign_keys=ON;"
    "PRAGMA temp_store=MEMORY;"
    "PRAGMA cache_size=-256;"
    "PRAGMA journal_size_limit=4194304;";

// A reader that finds a lock where none should stay tries a hundred times, with pauses of up to 0.3 seconds:
// ten seconds, in which the loop that called it serves nobody. What it waits for is another thread of this
// process, which needs no such pause.
int pause_shortly(sqlite3_vfs*, int microseconds) {
  constexpr int kMost = 1000;
  sqlite3_vfs* system = sqlite3_vfs_find(nullptr);
  system->xSleep(system, std::min(microseconds, kMost));
  return microseconds;
}

// SQLite's own waits through the above. One for a writer that is in a transaction; `most` is a number of
// milliseconds.
int wait_for_other(void* most, int count) {
  constexpr int kShort = 20, kLong = 5;  // a millisecond each at first
  int waited = count < kShort ? count : kShort + (count - kShort) * kLong;
  if (waited >= reinterpret_cast<intptr_t>(most)) return 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(count < kShort ? 1 : kLong));
  return 1;
}

const char* impatient_vfs() {
  static sqlite3_vfs ours = [] {
    sqlite3_vfs vfs = *sqlite3_vfs_find(nullptr);
    vfs.pNext = nullptr;
    vfs.zName = "impatient";
    vfs.xSleep = pause_shortly;
    return vfs;
  }();
  static const int registered = sqlite3_vfs_register(&ours, 0);
  return registered == SQLITE_OK ? ours.zName : nullptr;
}

}  // namespace

Query::~Query() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void Query::bind(int index, std::string_view value) {
  int rc = sqlite3_bind_text64(statement_, index, value.data() ? value.data() : "", value.size(),
                               SQLITE_STATIC, SQLITE_UTF8);
  if (rc != SQLITE_OK) bind_error_ = rc;
}

void Query::bind(int index, int64_t value) {
  int rc = sqlite3_bind_int64(statement_, index, value);
  if (rc != SQLITE_OK) bind_error_ = rc;
}

void Query::bind(int index, std::nullopt_t) {
  int rc = sqlite3_bind_null(statement_, index);
  if (rc != SQLITE_OK) bind_error_ = rc;
}

Result<bool> Query::next() {
  if (bind_error_ != SQLITE_OK) return fail_sqlite("bind", sqlite3_db_handle(statement_), bind_error_);
  int rc = sqlite3_step(statement_);
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  return fail_sqlite("state database", sqlite3_db_handle(statement_), rc);
}

Result<void> Query::done() {
  while (TRY(next())) {
  }
  return {};
}

std::string_view Query::text(int column) const {
  const unsigned char* bytes = sqlite3_column_text(statement_, column);
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const char*>(bytes),
          static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

int64_t Query::integer(int column) const { return sqlite3_column_int64(statement_, column); }
bool Query::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

Query Statement::run_texts(const std::vector<std::string>& texts, std::initializer_list<int64_t> numbers) {
  Query query(statement_.get());
  int index = 0;
  for (const std::string& text : texts) query.bind(++index, std::string_view(text));
  for (int64_t number : numbers) query.bind(++index, number);
  return query;
}

Result<Database> Database::open(const std::string& path, Locking locking) { return open_as(path, locking); }

Result<Database> Database::open_in_memory() { return open_as(":memory:", Locking::shared); }

// Whatever kept SQLite from opening the file, its log or its index for writing, it takes what it can read,
// and never writes to it. On a disk that takes no writes that is right; after a moment without memory it is
// not.
Result<Database> Database::open_as(const std::string& path, Locking locking) {
  Database db = TRY(open_once(path, locking));
  if (::access(path.c_str(), W_OK) != 0 || db.can_write()) return db;
  db.db_.reset();  // first: connections of one process share their index, with the right to write it
  return open_once(path, locking);
}

bool Database::can_write() {
  // Of a file that was opened for reading it makes a transaction that reads.
  if (sqlite3_db_readonly(db_.get(), "main") == 1) return false;
  auto begun = execute("BEGIN IMMEDIATE");
  if (begun) static_cast<void>(execute("ROLLBACK"));
  return begun || begun.error().sys_errno != EROFS;
}

Result<Database> Database::open_once(const std::string& path, Locking locking) {
  sqlite3* raw = nullptr;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  int rc = sqlite3_open_v2(path.c_str(), &raw, flags, impatient_vfs());
  Database db(raw);  // also a failed open must be closed
  if (rc != SQLITE_OK) return fail_sqlite("open state database " + path, raw, rc);
  db.set_patience(kPatience);
  // Before anything is read: the choice between an index in a file and one in memory is made then.
  std::string pragmas = locking == Locking::exclusive ? "PRAGMA locking_mode=EXCLUSIVE;" : "";
  TRY(in_context("open state database " + path, db.execute(pragmas + kPragmas)));
  // An orderly end would remove the log and its index, and the next start, on a full disk, could not make
  // them.
  int keep = 1;
  sqlite3_file_control(raw, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
  return db;
}

Result<void> Database::execute(const std::string& sql) {
  int rc = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return fail_sqlite("execute", db_.get(), rc);
  return {};
}

void Database::set_patience(std::chrono::milliseconds most) {
  sqlite3_busy_handler(db_.get(), wait_for_other, reinterpret_cast<void*>(most.count()));
}

Result<void> Database::try_transaction() {
  if (in_transaction()) return {};
  TRY(execute("BEGIN IMMEDIATE"));
  return execute("ROLLBACK");
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  int rc = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                              &statement, nullptr);
  if (rc != SQLITE_OK) return fail_sqlite("prepare", db_.get(), rc);
  return Statement(statement);
}

Result<Transaction> Transaction::begin(Database& db) {
  TRY(db.execute("BEGIN IMMEDIATE"));
  return Transaction(db);
}

Transaction::~Transaction() {
  // A rollback fails only when SQLite has rolled back already.
  if (db_ != nullptr) static_cast<void>(db_->execute("ROLLBACK"));
}

Result<void> Transaction::commit() {
  TRY(db_->execute("COMMIT"));
  db_ = nullptr;
  return {};
}

}  // namespace osb::store
