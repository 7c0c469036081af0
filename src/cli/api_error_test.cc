#include "cli/api_error.h"

#include <gtest/gtest.h>

namespace osb::cli {
namespace {

TEST(ApiError, ShowsCodeCauseAndRemedy) {
  auto error = api_error(
      400,
      R"({"code":"SANDBOX::INVALID_ENTRYPOINT","message":"cannot start","cause":"no /nope","remedy":"name another"})");
  EXPECT_EQ(error.code, Code::invalid_argument);
  EXPECT_EQ(error.message,
            "SANDBOX::INVALID_ENTRYPOINT: cannot start\n  cause: no /nope\n  remedy: name another");
}

TEST(ApiError, TheRemedyIsSaidOnce) {
  auto error = api_error(409, R"({"code":"C","message":"it is Paused; resume it","remedy":"resume it"})");
  EXPECT_EQ(error.message, "C: it is Paused\n  remedy: resume it");
}

TEST(ApiError, RequestIdOnlyWhereItHelps) {
  EXPECT_EQ(api_error(500, R"({"code":"X","message":"m","requestId":"r1"})").message, "X: m\n  request: r1");
  EXPECT_EQ(api_error(404, R"({"code":"X","message":"m","requestId":"r1"})").message, "X: m");
}

TEST(ApiError, MissingKeyHasARemedyOfItsOwn) {
  auto error = api_error(401, R"({"code":"MISSING_API_KEY","message":"no key"})");
  EXPECT_EQ(error.code, Code::unauthenticated);
  constexpr char kText[] =
      "MISSING_API_KEY: no key\n  remedy: set OPEN_SANDBOX_API_KEY to the server's key, or give it with "
      "--api-key";
  EXPECT_EQ(error.message, kText);
  EXPECT_EQ(
      api_error(
          401, R"({"code":"MISSING_API_KEY","message":"no key; send the header","remedy":"send the header"})")
          .message,
      kText);
}

TEST(ApiError, AnUnhealthyServerSaysWhatIsWrong) {
  auto error = api_error(
      503,
      R"({"status":"unhealthy","checks":[{"name":"runtime","cause":"no groups","remedy":"mount them"}]})");
  EXPECT_EQ(error.code, Code::exhausted);
  EXPECT_EQ(error.message,
            "HTTP 503: the server cannot do its work\n  cause: no groups\n  remedy: mount them");
  EXPECT_EQ(api_error(500, R"({"checks":7})").message, "HTTP 500");
  EXPECT_EQ(api_error(500, R"({"checks":[]})").message, "HTTP 500");
  EXPECT_EQ(api_error(500, R"({"checks":[7]})").message, "HTTP 500: the server cannot do its work");
}

TEST(ApiError, SurvivesForeignBodies) {
  EXPECT_EQ(api_error(502, "<html>\x1b[31mbad</html>").message, "HTTP 502: <html> [31mbad</html>");
  EXPECT_EQ(api_error(500, "").message, "HTTP 500");
  EXPECT_EQ(api_error(500, R"({"code":7,"message":["x"]})").message, "HTTP 500");
  EXPECT_EQ(api_error(404, R"({"detail":"Not Found"})").message, "HTTP 404");
}

}  // namespace
}  // namespace osb::cli
