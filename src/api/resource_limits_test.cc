#include "api/resource_limits.h"

#include <gtest/gtest.h>

namespace osb::api {
namespace {

TEST(ResourceLimits, Cpu) {
  const std::pair<const char*, int64_t> accepted[] = {
      {"1", 1000},   {"0.5", 500},  {"2.25", 2250},   {"250m", 250},
      {"250M", 250}, {" 1 ", 1000}, {".5", 500},      {"1e0", 1000},
      {"0.1", 100},  {"0.29", 290}, {"1.0005", 1000}, {"1000000", 1'000'000'000},
      {"+2", 2000},
  };
  for (auto [text, millis] : accepted) EXPECT_EQ(parse_cpu(text), millis) << text;
  for (const char* text :
       {"",    " ",   "0", "0m",  "-1",   "-0.5",  "one",         "1 core", "1,5", "0x10", "inf", "-inf",
        "nan", "NaN", "m", "1mm", "1 m2", "1e400", "99999999999", "--1",    "+-1", "1e",   "."}) {
    EXPECT_EQ(parse_cpu(text), std::nullopt) << text;
  }
}

TEST(ResourceLimits, Memory) {
  const std::pair<const char*, int64_t> accepted[] = {
      {"67108864", 67108864},
      {"512Mi", 512LL << 20},
      {"512MI", 512LL << 20},
      {"2Gi", 2LL << 30},
      {"1ti", 1LL << 40},
      {"64k", 64000},
      {"64kb", 64000},
      {"64Ki", 65536},
      {"500M", 500'000'000},
      {"500mb", 500'000'000},
      {"2g", 2'000'000'000},
      {"2GB", 2'000'000'000},
      {"1T", 1'000'000'000'000},
      {"1TB", 1'000'000'000'000},
      {"100b", 100},
      {" 512Mi ", 512LL << 20},
  };
  for (auto [text, bytes] : accepted) EXPECT_EQ(parse_memory(text), bytes) << text;
  for (const char* text : {"",
                           " ",
                           "0",
                           "0Mi",
                           "-1",
                           "-512Mi",
                           "1.5Gi",
                           "Gi",
                           "512 Mi",
                           "512Pi",
                           "512KiB",
                           "512MiB",
                           "512x",
                           "9223372036854775808",
                           "9223372036854775807Ki",
                           "0x10",
                           "1e9",
                           "all",
                           "+5Gi",
                           "512Mi\n5"}) {
    EXPECT_EQ(parse_memory(text), std::nullopt) << text;
  }
}

TEST(ResourceLimits, NamesTheKeyThatIsWrong) {
  struct Case {
    const char *key, *text, *code;
  };
  const Case refused[] = {
      {"cpu", "0", "SANDBOX::INVALID_PARAMETER"},
      {"cpu", "9m", "SANDBOX::INVALID_PARAMETER"},  // below the floor
      {"cpu", "lots", "SANDBOX::INVALID_PARAMETER"},
      {"memory", "15Mi", "SANDBOX::INVALID_PARAMETER"},  // below the floor
      {"memory", "1.5Gi", "SANDBOX::INVALID_PARAMETER"},
      {"memory", "", "SANDBOX::INVALID_PARAMETER"},
      {"pids", "1", "SANDBOX::INVALID_PARAMETER"},
      {"pids", "many", "SANDBOX::INVALID_PARAMETER"},
      {"CPU", "1", "SANDBOX::INVALID_PARAMETER"},
      {"bandwidth", "1", "SANDBOX::INVALID_PARAMETER"},
      {"", "1", "SANDBOX::INVALID_PARAMETER"},
      {"gpu", "0", "SANDBOX::INVALID_PARAMETER"},
      {"gpu", "-1", "SANDBOX::INVALID_PARAMETER"},
      {"gpu", "1025", "SANDBOX::INVALID_PARAMETER"},
      {"gpu", "0.5", "SANDBOX::INVALID_PARAMETER"},
      {"gpu", "some", "SANDBOX::INVALID_PARAMETER"},
      {"gpu", "", "SANDBOX::INVALID_PARAMETER"},
      {"disk", "15Mi", "SANDBOX::INVALID_PARAMETER"},
      {"disk", "0", "SANDBOX::INVALID_PARAMETER"},
      {"storage", "big", "SANDBOX::INVALID_PARAMETER"},
      {"ephemeral-storage", "1.5Gi", "SANDBOX::INVALID_PARAMETER"},
      {"io-read", "1", "SANDBOX::INVALID_PARAMETER"},
      {"io-write", "fast", "SANDBOX::INVALID_PARAMETER"},
      {"io", "10Mi", "SANDBOX::INVALID_PARAMETER"},
      {"nofile", "63", "SANDBOX::INVALID_PARAMETER"},
      {"nofile", "1k", "SANDBOX::INVALID_PARAMETER"},
      {"nofile", "unlimited", "SANDBOX::INVALID_PARAMETER"},
      // More than the launcher takes.
      {"cpu", "1025", "SANDBOX::INVALID_PARAMETER"},
      {"cpu", "1024001m", "SANDBOX::INVALID_PARAMETER"},
      {"pids", "4000001", "SANDBOX::INVALID_PARAMETER"},
      {"disk", "17Ti", "SANDBOX::INVALID_PARAMETER"},
      {"nofile", "1073741825", "SANDBOX::INVALID_PARAMETER"},
  };
  for (const Case& c : refused) {
    auto result = parse_limits({{c.key, c.text}});
    ASSERT_FALSE(result) << c.key << "=" << c.text;
    EXPECT_EQ(result.error().status, 400);
    EXPECT_EQ(result.error().code, c.code) << c.key;
    EXPECT_NE(result.error().message.find(std::string("resourceLimits.") + c.key), std::string::npos);
  }
}

TEST(ResourceLimits, TheLargestAreTaken) {
  auto most =
      parse_limits({{"cpu", "1024"}, {"pids", "4000000"}, {"disk", "16Ti"}, {"nofile", "1073741824"}});
  ASSERT_TRUE(most) << most.error().message;
  EXPECT_EQ(most->cpu_millis, 1'024'000);
}

TEST(ResourceLimits, AbsentMeansNoLimit) {
  auto none = parse_limits({});
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->cpu_millis || none->memory_bytes || none->pids || none->disk_bytes ||
               none->io_read_bytes || none->io_write_bytes || none->open_files);
  auto some = parse_limits({{"cpu", "10m"}, {"memory", "16Mi"}, {"pids", "16"}});
  ASSERT_TRUE(some);
  EXPECT_EQ(some->cpu_millis, 10);
  EXPECT_EQ(some->memory_bytes, 16 << 20);
  for (const char* key : {"disk", "storage", "ephemeral-storage"})
    EXPECT_EQ(parse_limits({{key, "1Gi"}})->disk_bytes, 1 << 30);
  EXPECT_FALSE(parse_limits({{"disk", "1Gi"}, {"storage", "1Gi"}}));
  auto speed = parse_limits({{"io-read", "10M"}, {"io-write", "64Ki"}, {"nofile", " 1024 "}});
  ASSERT_TRUE(speed);
  EXPECT_EQ(speed->io_read_bytes, 10'000'000);
  EXPECT_EQ(speed->io_write_bytes, 65536);
  EXPECT_EQ(speed->open_files, 1024);
  EXPECT_EQ(some->pids, 16);
}

TEST(ResourceLimits, Gpus) {
  EXPECT_EQ(parse_limits({{"gpu", "2"}})->gpus, 2);
  EXPECT_EQ(parse_limits({{"gpu", " all "}})->gpus, sandbox::kAllGpus);
  EXPECT_FALSE(parse_limits({{"cpu", "1"}})->gpus);
}

}  // namespace
}  // namespace osb::api
