#include "launcher/identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/fd.h"
#include "launcher/settings.h"

namespace osb::launcher {
namespace {

namespace fs = std::filesystem;

constexpr char kText[] = "0123456789abcdef0123456789abcdef\nopensandbox-0123456789abcdef\n";

TEST(IdentityText, RoundTrip) {
  auto parsed = parse_identity(kText);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(to_text(*parsed), kText);
  EXPECT_TRUE(parse_identity("0123456789abcdef0123456789abcdef\nopensandbox-01234567\n"))
      << "of an earlier version";
}

TEST(IdentityText, Rejections) {
  for (const char* text : {
           "",
           "\n",
           "\n\n",
           "0123456789abcdef0123456789abcdef",
           "0123456789abcdef0123456789abcdef\n",
           "0123456789abcdef0123456789abcdef\nopensandbox-0123456789abcdef",
           "0123456789abcdef0123456789abcde\nopensandbox-0123456789abcdef\n",
           "0123456789ABCDEF0123456789abcdef\nopensandbox-0123456789abcdef\n",
           "0123456789abcdef0123456789abcdef\n../0123456789abcdef\n",
           "0123456789abcdef0123456789abcdef\nopensandbox-\n",
           "0123456789abcdef0123456789abcdef\nopensandbox-../../0123456\n",
           "0123456789abcdef0123456789abcdef\nopensandbox-0123456789abcde\n",
           "0123456789abcdef0123456789abcdef\nopensandbox-0123456789abcdef\nmore",
           "0123456789abcdef0123456789abcdef\n\nopensandbox-0123456789abcdef\n",
       }) {
    EXPECT_FALSE(parse_identity(text)) << text;
  }
}

class Claim : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "claim-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    base = fs::canonical(name);
  }
  void TearDown() override { fs::remove_all(base); }

  std::string make(const std::string& name, mode_t mode = 0755) {
    std::string path = base + "/" + name;
    EXPECT_EQ(::mkdir(path.c_str(), mode), 0) << path;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  void file(const std::string& path, std::string_view text = "") {
    ASSERT_TRUE(write_file(path, text, O_CREAT));
  }
  static mode_t mode_of(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  // What a version without identities leaves behind.
  std::string earlier(const std::string& name) {
    std::string path = make(name);
    file(path + "/lock");
    for (const char* dir : {"sandboxes", "db", "trash"}) fs::create_directory(path + "/" + dir);
    return path;
  }

  std::string base;
};

TEST_F(Claim, AFreshDirectoryIsMadeAndStaysTheSameService) {
  std::string path = base + "/state";
  auto made = claim_state_dir(path, path);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->group, "opensandbox-" + made->id.substr(0, 16));
  EXPECT_EQ(mode_of(path), 0711u);
  EXPECT_EQ(mode_of(path + "/identity"), 0600u);
  EXPECT_EQ(std::distance(fs::directory_iterator(path), fs::directory_iterator()), 1) << "nothing else";
  for (const std::string& given : {path, path + "/", base + "//state"}) {
    auto again = claim_state_dir(path, given);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->id, made->id);
    EXPECT_EQ(again->group, made->group);
  }
  auto other = claim_state_dir(base + "/other", path);
  ASSERT_TRUE(other);
  EXPECT_NE(other->group, made->group) << "the path does not matter";
}

TEST_F(Claim, AnEmptyDirectoryKeepsItsMode) {
  std::string open = make("open", 0755), closed = make("closed", 0700), fresh = make("fresh");
  EXPECT_TRUE(claim_state_dir(open, open));
  EXPECT_EQ(mode_of(open), 0755u);
  EXPECT_TRUE(claim_state_dir(closed, closed));
  EXPECT_EQ(mode_of(closed), 0711u) << "the server passes through";
  fs::create_directory(fresh + "/lost+found");
  file(fresh + "/identity.new-0123");
  EXPECT_TRUE(claim_state_dir(fresh, fresh)) << "a fresh file system, and an attempt that was cut short";
}

TEST_F(Claim, RefusesUntouched) {
  std::string with_files = make("files"), writable = make("writable", 01777), damaged = make("damaged");
  file(with_files + "/notes");
  file(damaged + "/identity", "x");
  file(base + "/file", "text");
  fs::create_directory_symlink(with_files, base + "/link");
  std::string half = make("half");  // some of our names are not enough
  file(half + "/lock");
  fs::create_directory(half + "/db");
  std::string pictures = make("pictures");
  fs::create_directory(pictures + "/images");
  for (const std::string& path : {with_files, writable, damaged, base + "/file", base + "/link", half,
                                  pictures, base + "/no/such", std::string("/proc")}) {
    mode_t before = fs::exists(path) ? mode_of(path) : 0;
    auto claimed = claim_state_dir(path, path);
    ASSERT_FALSE(claimed) << path;
    if (before) EXPECT_EQ(mode_of(path), before) << path;
    if (path != damaged) EXPECT_FALSE(fs::exists(path + "/identity")) << path;
  }
  EXPECT_EQ(read_file(base + "/file").value_or(""), "text");
  EXPECT_FALSE(fs::exists(base + "/no"));
}

TEST_F(Claim, OfSomebodyElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  std::string path = make("theirs");
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(claim_state_dir(path, path));
  EXPECT_FALSE(fs::exists(path + "/identity"));
}

TEST_F(Claim, AnEarlierVersionsNamesAreKeptWhileItsSandboxesExist) {
  std::string path = earlier("kept");
  fs::create_directory(path + "/sandboxes/one");
  auto kept = claim_state_dir(path, path + "/");
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->group, cgroup_name(path + "/")) << "as the path was written";

  std::string linked = earlier("linked");
  fs::create_directory(linked + "/sandboxes/one");
  fs::create_symlink("/run/opensandbox-0badcafe", linked + "/run");
  auto followed = claim_state_dir(linked, linked);
  ASSERT_TRUE(followed);
  EXPECT_EQ(followed->group, "opensandbox-0badcafe") << "whatever the path was then";

  std::string empty = earlier("empty");
  auto fresh = claim_state_dir(empty, empty);
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->group, "opensandbox-" + fresh->id.substr(0, 16));
}

TEST_F(Claim, AnIdentityThatAPowerCutEmptiedIsMadeAnew) {
  std::string path = make("cut-off");
  file(path + "/identity");
  fs::create_directory(path + "/images");
  auto made = claim_state_dir(path, path);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(read_identity(path)->id, made->id);
}

TEST_F(Claim, ImagesMayComeFirst) {
  std::string path = make("images-first");
  fs::create_directories(path + "/images/store");
  fs::create_directory(path + "/catalog");
  file(path + "/images/store/lock");
  EXPECT_TRUE(claim_state_dir(path, path));
}

TEST_F(Claim, EverySpellingIsOnePath) {
  std::string path = make("state");
  fs::create_directory_symlink(path, base + "/link");
  for (const std::string& given : {path, path + "/", path + "//", base + "/./state", base + "//state/.",
                                   base + "/link", base + "/link/", base + "/link/../state"}) {
    auto resolved = resolve_state_dir(given);
    ASSERT_TRUE(resolved) << given;
    EXPECT_EQ(*resolved, path) << given;
  }
  EXPECT_EQ(resolve_state_dir(base + "/link/new/").value_or(""), path + "/new") << "not made yet";
  EXPECT_EQ(resolve_state_dir("/").value_or(""), "/");
  fs::create_symlink("loop", base + "/loop");
  EXPECT_FALSE(resolve_state_dir(base + "/loop/x"));
}

TEST(IdentityText, AFingerprintTellsServicesApartAndNothingElse) {
  Identity one{std::string(32, 'a'), "opensandbox-1111111111111111"};
  Identity other{std::string(31, 'a') + "b", one.group};
  EXPECT_EQ(fingerprint(one).size(), 32u);
  EXPECT_NE(fingerprint(one), fingerprint(other));
  EXPECT_EQ(fingerprint(one).find(one.id.substr(0, 8)), std::string::npos);
}

}  // namespace
}  // namespace osb::launcher
