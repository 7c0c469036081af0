#include "interpreter/language.h"

#include <gtest/gtest.h>

namespace osb::interpreter {
namespace {

TEST(Language, IsFoundByNameAndAlias) {
  ASSERT_NE(find_language("python"), nullptr);
  EXPECT_EQ(find_language("Python3"), find_language("python"));
  EXPECT_EQ(find_language("cobol"), nullptr);
  EXPECT_EQ(find_language(""), nullptr);
  EXPECT_EQ(find_language("python3 ipython"), nullptr);
}

TEST(Language, EveryRowHasItsSources) {
  for (const Language& language : languages()) {
    auto source = kernel_source(language);
    EXPECT_TRUE(source) << language.name << ": " << (source ? "" : source.error().message);
    EXPECT_FALSE(language.install.empty()) << language.name;
  }
}

TEST(Language, SourcesOfOneKernelAreMarked) {
  auto source = kernel_source(*find_language("python"));
  ASSERT_TRUE(source);
  EXPECT_TRUE(source->starts_with("\n#%% python.py\n"));
  EXPECT_NE(source->find("\n#%% python_magic.py\n"), std::string::npos);
}

TEST(Language, AMissingInterpreterSaysWhatToInstall) {
  execd::Environment env;
  env.set("PATH", "/nonexistent");
  auto found = find_interpreter(*find_language("python"), env);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::not_found);
  EXPECT_NE(found.error().message.find("'python3' or 'python'"), std::string::npos) << found.error().message;
  EXPECT_NE(found.error().message.find("install the Debian package python3"), std::string::npos);
}

}  // namespace
}  // namespace osb::interpreter
