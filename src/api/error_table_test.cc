#include "api/error_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/fd.h"

namespace osb::api {
namespace {

TEST(ErrorTable, EveryCodeOnceWithWordsForPeople) {
  std::set<std::string_view> codes;
  for (const ErrorGroup& group : error_table()) {
    EXPECT_FALSE(group.rows.empty()) << group.title;
    for (const ErrorRow& row : group.rows) {
      EXPECT_TRUE(codes.insert(row.code).second) << row.code << " is there twice";
      EXPECT_TRUE(row.when.ends_with('.')) << row.code;
      EXPECT_TRUE(row.remedy.ends_with('.')) << row.code;
      EXPECT_GE(row.statuses.size(), 3u) << row.code;
    }
  }
}

// With OSB_WRITE_DOCS it is written instead.
TEST(ErrorTable, TheDocumentIsCurrent) {
  if (std::getenv("OSB_WRITE_DOCS") != nullptr)
    ASSERT_TRUE(write_file(OSB_ERRORS_DOCUMENT, errors_document(), O_CREAT | O_TRUNC | O_WRONLY));
  auto document = read_file(OSB_ERRORS_DOCUMENT);
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(*document, errors_document()) << "write it anew: OSB_WRITE_DOCS=1 api_test";
}

}  // namespace
}  // namespace osb::api
