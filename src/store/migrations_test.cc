#include "store/migrations.h"

#include <gtest/gtest.h>

#include "store/database.h"

namespace osb::store {
namespace {

TEST(Migrations, RunOnceAndInOrder) {
  auto db = Database::open_in_memory();
  const char* first[] = {"CREATE TABLE t (a TEXT) STRICT; INSERT INTO t VALUES ('one')"};
  const char* second[] = {first[0], "ALTER TABLE t ADD COLUMN b TEXT; UPDATE t SET b = a || '!'"};
  ASSERT_TRUE(migrate(*db, first));
  ASSERT_TRUE(migrate(*db, first));
  ASSERT_TRUE(migrate(*db, second));
  auto statement = db->prepare("SELECT b, count(*) FROM t");
  auto query = statement->run();
  ASSERT_TRUE(*query.next());
  EXPECT_EQ(query.text(0), "one!");
  EXPECT_EQ(query.integer(1), 1);
}

// 1 is NORMAL: nothing is written over what a power cut could still need.
TEST(Migrations, LeaveADatabaseThatIsSynced) {
  auto db = Database::open_in_memory();
  const char* steps[] = {"CREATE TABLE t (a TEXT) STRICT"};
  for (int start = 0; start < 2; ++start) {
    ASSERT_TRUE(migrate(*db, steps));
    auto statement = db->prepare("PRAGMA synchronous");
    auto query = statement->run();
    ASSERT_TRUE(*query.next());
    EXPECT_EQ(query.integer(0), 1);
  }
}

TEST(Migrations, AFailedStepIsUndoneAndNamed) {
  auto db = Database::open_in_memory();
  const char* steps[] = {"CREATE TABLE t (a TEXT) STRICT",
                         "CREATE TABLE u (a TEXT) STRICT; DROP TABLE nothing"};
  auto result = migrate(*db, steps);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("schema 2"), std::string::npos) << result.error().message;
  EXPECT_TRUE(db->execute("INSERT INTO t VALUES ('x')"));
  EXPECT_FALSE(db->execute("INSERT INTO u VALUES ('x')"));
}

TEST(Migrations, OneThatWaitsSinceBeforeItHadAnIdHasNone) {
  auto db = Database::open_in_memory();
  ASSERT_TRUE(migrate(*db, migrations().first(9)));
  ASSERT_TRUE(db->execute("INSERT INTO pool_members VALUES ('h', 'p', 'docker', 'i', 'w', 7)"));
  ASSERT_TRUE(migrate(*db));
  auto statement = db->prepare("SELECT handle, sandbox_id FROM pool_members");
  auto query = statement->run();
  ASSERT_TRUE(*query.next());
  EXPECT_EQ(query.text(0), "h");
  EXPECT_EQ(query.text(1), "");
}

TEST(Migrations, RefuseANewerDatabase) {
  auto db = Database::open_in_memory();
  ASSERT_TRUE(db->execute("PRAGMA user_version=999"));
  auto result = migrate(*db);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::unsupported);
}

}  // namespace
}  // namespace osb::store
