#include "store/database.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "base/fd.h"
#include "store/store.h"

namespace osb::store {
namespace {

// SQLite answers CANTOPEN_ISDIR, an extended code of which only the low byte is the kind of error.
TEST(Database, ExtendedCodesHaveTheMeaningOfTheirKind) {
  auto directory = Database::open(testing::TempDir(), Locking::shared);
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().sys_errno, EISDIR) << directory.error().message;
  EXPECT_EQ(directory.error().code, Code::invalid_argument);
}

TEST(Database, RefusesWhatIsNoDatabase) {
  std::string path = testing::TempDir() + "not_a_database";
  ASSERT_TRUE(write_file(path, std::string(4096, 'x'), O_CREAT | O_WRONLY | O_TRUNC));
  auto store = Store::open(path);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Code::corrupt) << store.error().message;
  EXPECT_NE(store.error().message.find(path), std::string::npos);
}

// A process that holds every lock of the index beside the database, as one does that could not give them
// back.
class Holder {
 public:
  explicit Holder(const std::string& index) {
    int ready[2], end[2];
    if (::pipe(ready) < 0 || ::pipe(end) < 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(end[1]);
      int fd = ::open(index.c_str(), O_RDWR);
      struct flock all{F_WRLCK, SEEK_SET, 120, 8, 0};  // where SQLite has them
      bool held = ::fcntl(fd, F_SETLK, &all) == 0;
      (void)!::write(ready[1], held ? "y" : "n", 1);
      char c;
      (void)!::read(end[0], &c, 1);
      ::_exit(0);
    }
    ::close(end[0]);
    ::close(ready[1]);
    end_ = Fd(end[1]);
    Fd answer(ready[0]);
    char c = 'n';
    holds_ = ::read(answer.get(), &c, 1) == 1 && c == 'y';
  }
  ~Holder() {
    end_.reset();
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  bool holds() const { return holds_; }

 private:
  pid_t pid_ = -1;
  Fd end_;
  bool holds_ = false;
};

TEST(Database, AReaderDoesNotWaitForALockThatStays) {
  std::string path = testing::TempDir() + "locked_index";
  for (const char* more : {"", "-wal", "-shm"}) ::unlink((path + more).c_str());
  auto db = Database::open(path, Locking::shared);
  ASSERT_TRUE(db) << db.error().message;
  ASSERT_TRUE(db->execute("CREATE TABLE t (x); INSERT INTO t VALUES (1)"));
  {
    Holder holder(path + "-shm");
    ASSERT_TRUE(holder.holds());
    auto began = std::chrono::steady_clock::now();
    auto read = db->execute("SELECT * FROM t");
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(4)) << "SQLite's own are ten";
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::unavailable) << read.error().message;
  }
  auto read = db->execute("SELECT * FROM t");
  EXPECT_TRUE(read) << read.error().message;
}

}  // namespace
}  // namespace osb::store
