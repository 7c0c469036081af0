#include "server/rendered_rows.h"

#include <gtest/gtest.h>

#include "api/sandbox_json.h"

namespace osb::server {
namespace {

using sandbox::Sandbox;
using sandbox::SandboxPtr;

SandboxPtr row(std::string id, std::string image) {
  auto made = std::make_shared<Sandbox>();
  made->id = std::move(id);
  made->image = std::move(image);
  return made;
}

std::string printed(const Sandbox& row) {
  std::string out;
  api::append_sandbox(out, row);
  return out;
}

TEST(RenderedRows, AreWhatWouldBePrinted) {
  RenderedRows rows;
  SandboxPtr a = row("a", "host");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rows.of(a), printed(*a));
  EXPECT_EQ(rows.size(), 1u);
  SandboxPtr changed = row("a", "other");
  EXPECT_EQ(rows.of(changed), printed(*changed));
}

// A row that goes and one that comes may well have the same address.
TEST(RenderedRows, ARowIsNotTakenForOneThatWasThereBefore) {
  RenderedRows rows;
  for (int i = 0; i < 1000; ++i) {
    SandboxPtr one = row("a", std::to_string(i));
    ASSERT_EQ(rows.of(one), printed(*one));
  }
}

TEST(RenderedRows, AreBounded) {
  RenderedRows rows;
  std::string image(10'000, 'x');
  size_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    rows.of(row(std::to_string(i), image));
    most = std::max(most, rows.size());
  }
  EXPECT_LT(most * image.size(), RenderedRows::kMaxBytes + 2 * image.size());
  EXPECT_GT(most, 100u);
}

}  // namespace
}  // namespace osb::server
