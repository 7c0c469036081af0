#pragma once

// SQLite behind three types. A Database is one connection; a Statement is prepared once and kept; a Query is
// one use of a statement: it binds on the way in and resets on the way out, so that no read transaction
// outlives its reader.
//
//   auto query = find_.run(id);
//   if (TRY(query.next())) use(query.text(0));
//
// Everything belongs to one thread. Calls block, for microseconds: the journal is a write-ahead log that is
// not synced at a commit but soon after (checkpointer.h). A kill -9 loses nothing that way; a power cut may
// lose the commits of the last second, but it ends every sandbox too.

#include <sqlite3.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::store {

class Query {
 public:
  Query(Query&& other) noexcept
      : statement_(std::exchange(other.statement_, nullptr)), bind_error_(other.bind_error_) {}
  Query& operator=(Query&&) = delete;
  ~Query();

  Result<bool> next();                      // true: the columns hold a row
  Result<void> done();                      // runs to the end, for statements without rows
  std::string_view text(int column) const;  // until the next call; "" for NULL
  int64_t integer(int column) const;
  bool is_null(int column) const;

 private:
  friend class Statement;
  explicit Query(sqlite3_stmt* statement) : statement_(statement) {}
  void bind(int index, std::string_view value);
  void bind(int index, int64_t value);
  void bind(int index, std::nullopt_t);
  template <class T>
  void bind(int index, const std::optional<T>& value) {
    value ? bind(index, *value) : bind(index, std::nullopt);
  }

  sqlite3_stmt* statement_;
  int bind_error_ = SQLITE_OK;
};

class Statement {
 public:
  // Bound texts are borrowed: they must live as long as the Query.
  template <class... T>
  Query run(const T&... values) {
    Query query(statement_.get());
    int index = 0;
    (query.bind(++index, values), ...);
    return query;
  }
  // For statements whose number of parameters is known only at run time.
  Query run_texts(const std::vector<std::string>& texts, std::initializer_list<int64_t> numbers);

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

inline constexpr int64_t kLogBytes = 4 << 20;

// Connections that share a database agree through a file beside it, which takes 32 KiB of disk at every
// start. An exclusive one keeps that in memory: slower to hold, but it opens on a disk without any room.
enum class Locking { shared, exclusive };

class Database {
 public:
  // The file must exist (files.h).
  static Result<Database> open(const std::string& path, Locking locking = Locking::shared);
  static Result<Database> open_in_memory();

  Result<void> execute(const std::string& sql);
  Result<Statement> prepare(std::string_view sql);
  sqlite3* handle() { return db_.get(); }
  // Whether one could begin; nothing is written. Code::unavailable: somebody is in one.
  Result<void> try_transaction();
  bool in_transaction() const { return sqlite3_get_autocommit(db_.get()) == 0; }

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  explicit Database(sqlite3* db) : db_(db) {}
  static Result<Database> open_once(const std::string& path, Locking locking);
  bool can_write();
  static Result<Database> open_as(const std::string& path, Locking locking);
  std::unique_ptr<sqlite3, Close> db_;
};

// Rolls back unless commit() was called.
class Transaction {
 public:
  static Result<Transaction> begin(Database& db);
  Transaction(Transaction&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Result<void> commit();

 private:
  explicit Transaction(Database& db) : db_(&db) {}
  Database* db_;
};

}  // namespace osb::store
