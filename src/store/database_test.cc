#include "store/database.h"

#include <fcntl.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace osb::store
