#include "api/failure_status.h"

#include <gtest/gtest.h>

#include "sandbox/failures.h"

namespace osb::api {
namespace {

// Statuses are part of the contract with published clients: one that changes breaks them.
TEST(FailureStatus, EveryFailureOfTheDomainHasItsStatus) {
  const Error error{Code::internal, 0, "why"};
  struct Case {
    sandbox::Failure failure;
    int status;
    const char* code;
    bool retry = false;
  };
  const Case cases[] = {
      {sandbox::not_found("x"), 404, "SANDBOX::NOT_FOUND"},
      {sandbox::invalid_label("k", "why"), 400, "SANDBOX::INVALID_METADATA_LABEL"},
      {sandbox::image_not_found(error), 400, "IMAGE::NOT_FOUND"},
      {sandbox::image_unreachable(error), 500, "IMAGE::UNREACHABLE"},
      {sandbox::image_refused(error), 400, "IMAGE::UNAUTHORIZED"},
      {sandbox::image_invalid(error), 500, "IMAGE::INVALID"},
      {sandbox::image_invalid({Code::exhausted, 0, "why"}), 500, "IMAGE::NO_ROOM"},
      {sandbox::image_name_taken(error), 409, "IMAGE::NAME_TAKEN"},
      {sandbox::image_commit_failed({Code::not_found, 0, "why"}), 404, "IMAGE::NOT_FOUND"},
      {sandbox::image_commit_failed({Code::already_exists, 0, "why"}), 409, "IMAGE::NAME_TAKEN"},
      {sandbox::image_commit_failed({Code::invalid_argument, 0, "why"}), 400, "SANDBOX::INVALID_PARAMETER"},
      {sandbox::image_commit_failed(error), 500, "SANDBOX::INTERNAL_ERROR"},
      {sandbox::invalid_entrypoint(error), 400, "SANDBOX::INVALID_ENTRYPOINT"},
      {sandbox::bad_limit(error), 400, "SANDBOX::INVALID_PARAMETER"},
      {sandbox::unsupported_by_runtime(error), 400, "SANDBOX::UNSUPPORTED"},
      {sandbox::unknown_runtime("y"), 400, "SANDBOX::INVALID_PARAMETER"},
      {sandbox::runtime_away(error), 503, "SANDBOX::OVERLOADED", true},
      {sandbox::delete_failed({Code::unavailable, 0, "away"}), 503, "SANDBOX::OVERLOADED", true},
      {sandbox::start_failed(error), 500, "SANDBOX::START_FAILED"},
      {sandbox::start_failed_on_disk(error), 500, "SANDBOX::START_FAILED"},
      {sandbox::too_many_creates("why"), 429, "SANDBOX::TOO_MANY_REQUESTS", true},
      {sandbox::expiration_in_the_past(), 400, "SANDBOX::INVALID_EXPIRATION"},
      {sandbox::no_expiration("x"), 409, "SANDBOX::INVALID_EXPIRATION"},
      {sandbox::not_running("x", "Failed", "why"), 409, "SANDBOX::NOT_RUNNING"},
      {sandbox::not_paused("x", "Failed"), 409, "SANDBOX::NOT_PAUSED"},
      {sandbox::paused("x", "Paused"), 409, "SANDBOX::PAUSED"},
      {sandbox::pause_unsupported(error), 400, "SANDBOX::UNSUPPORTED"},
      {sandbox::pause_failed(error), 500, "SANDBOX::PAUSE_FAILED"},
      {sandbox::resume_failed(error), 500, "SANDBOX::RESUME_FAILED"},
      {sandbox::delete_failed(error), 500, "SANDBOX::DELETE_FAILED"},
      {sandbox::unreachable("x", error), 503, "SANDBOX::OVERLOADED", true},
      {sandbox::internal_error(error), 500, "SANDBOX::INTERNAL_ERROR"},
  };
  for (const Case& c : cases) {
    ApiError answer = to_api_error(c.failure);
    EXPECT_EQ(answer.status, c.status) << c.code;
    EXPECT_EQ(answer.code, c.code);
    EXPECT_EQ(answer.message, c.failure.message);
    EXPECT_EQ(answer.cause, c.failure.cause);
    EXPECT_EQ(answer.remedy, c.failure.remedy);
    EXPECT_EQ(answer.retry_after_seconds.has_value(), c.retry) << c.code;
  }
}

}  // namespace
}  // namespace osb::api
