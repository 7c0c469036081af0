#include "docker/patient_look_up.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <latch>
#include <thread>

#include "io/testing.h"

namespace osb::docker {
namespace {

class PatientLookUp : public testing::Test {
 protected:
  PatientLookUp() {
    char name[] = "/tmp/osb-patient-XXXXXX";
    directory_ = ::mkdtemp(name);
    for (const char* part : {"/shared/a", "/state"}) std::filesystem::create_directories(directory_ + part);
  }
  ~PatientLookUp() override { std::filesystem::remove_all(directory_); }
  Result<FileId> look_up(const std::string& path, io::Duration patience = std::chrono::seconds(10)) {
    return io::testing::run(look_up_patiently({directory_ + "/shared"}, directory_ + "/state",
                                              directory_ + path, Missing::told, patience));
  }
  std::string directory_;
};

TEST_F(PatientLookUp, TheSameAsWithoutAThread) {
  auto found = look_up("/shared/a");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found,
            *look_up_host_path({directory_ + "/shared"}, directory_ + "/state", directory_ + "/shared/a"));
  EXPECT_EQ(look_up("/state").error().code, Code::permission_denied);
}

std::latch& answers() {
  static std::latch one(1);
  return one;
}

Result<FileId> hang(const std::vector<std::string>&, const std::string&, const std::string&, Missing) {
  answers().wait();
  return FileId{};
}

TEST_F(PatientLookUp, NobodyWaitsForAFileSystemThatHangs) {
  auto try_it = [](io::Duration patience = std::chrono::milliseconds(1)) {
    auto found = io::testing::run(look_up_patiently({}, "", "", Missing::told, patience, hang));
    return found ? Code::cancelled : found.error().code;  // that it never is otherwise
  };
  for (int i = 0; i < 16; ++i) EXPECT_EQ(try_it(), Code::timeout) << i;
  EXPECT_EQ(try_it(), Code::unavailable) << "threads are not made without an end";
  answers().count_down();
  while (try_it(std::chrono::seconds(10)) == Code::unavailable) std::this_thread::yield();
  EXPECT_EQ(try_it(std::chrono::seconds(10)), Code::cancelled) << "and are given back";
}

}  // namespace
}  // namespace osb::docker
