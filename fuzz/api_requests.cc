// What clients of the lifecycle API send: a body is decoded or refused with a sentence, limits that are
// accepted are positive, and a page of the list is one that exists.
#include "api/changes.h"
#include "api/create_request.h"
#include "api/list_query.h"
#include "api/resource_limits.h"
#include "check.h"

using namespace osb;

namespace {

constexpr char kJson[] = "application/json";

void check_refusal(const api::ApiError& error) {
  CHECK(error.status == 400 || error.status == 413 || error.status == 415 || error.status == 422 ||
        error.status == 501);
  CHECK(!error.code.empty() && !error.message.empty());
  CHECK(!api::to_json(error, "id").empty());
}

void check_limits(const std::map<std::string, std::string>& asked) {
  auto limits = api::parse_limits(asked);
  if (!limits) return check_refusal(limits.error());
  for (const auto& limit : {limits->cpu_millis, limits->memory_bytes, limits->pids, limits->disk_bytes,
                            limits->io_read_bytes, limits->io_write_bytes, limits->open_files}) {
    CHECK(!limit || *limit > 0);
  }
}

void check_create(std::string_view text) {
  auto body = api::decode_create(kJson, text);
  if (!body) return check_refusal(body.error());
  CHECK(!body->timeout_seconds || *body->timeout_seconds >= api::kMinTimeoutSeconds);
  for (const auto& [name, value] : body->env) CHECK(!name.empty() && name.find('=') == name.npos);
  if (body->resource_limits) check_limits(*body->resource_limits);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  check_create(text);
  if (auto patch = api::decode_metadata_patch(kJson, text); !patch) check_refusal(patch.error());
  if (auto until = api::decode_renewal(kJson, text); !until) check_refusal(until.error());
  if (auto event = api::check_metrics_event(kJson, text); !event) check_refusal(event.error());
  if (auto query = api::decode_list_query(text)) {
    CHECK(query->page >= 1 && query->page_size >= 1 && query->page_size <= 1000);
  } else {
    check_refusal(query.error());
  }
  check_limits({{"cpu", std::string(text)}, {"memory", std::string(text)}});
  return 0;
}
