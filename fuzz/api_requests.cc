// What clients of the lifecycle API send: a body is decoded or refused with a sentence, limits that are
// accepted are positive, and a page of the list is one that exists.
#include "api/changes.h"
#include "api/commit_request.h"
#include "api/create_request.h"
#include "api/follow.h"
#include "api/image_requests.h"
#include "api/list_query.h"
#include "api/pools.h"
#include "api/resource_limits.h"
#include "api/snapshots.h"
#include "api/volume_rules.h"
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
  if (!body->volumes) return;
  auto volumes = api::check_volumes(*body->volumes, {"/srv"});
  if (!volumes) return check_refusal(volumes.error());
  for (const auto& one : *volumes) {
    CHECK(one.mount_path.starts_with('/') && one.mount_path.find("/../") == one.mount_path.npos);
    CHECK(one.sub_path != ".." && !one.sub_path.starts_with("../") && !one.sub_path.starts_with('/'));
    CHECK(one.backend != sandbox::Volume::Backend::host || one.source.starts_with("/srv"));
  }
}

void check_snapshots(std::string_view text) {
  auto name = api::decode_snapshot(kJson, text);
  if (!name) check_refusal(name.error());
  if (name && *name) CHECK(!(*name)->empty());
  auto count = api::decode_fork(kJson, text);
  if (!count) check_refusal(count.error());
  if (count) CHECK(*count >= 1 && *count <= api::kMostForks);
  if (auto id = api::decode_rollback(kJson, text); !id) check_refusal(id.error());
  auto query = api::decode_snapshot_query(text);
  if (!query) return check_refusal(query.error());
  CHECK(query->page >= 1 && query->page_size >= 1 && query->page_size <= 200);
}

void check_pools(std::string_view text) {
  if (auto shape = api::decode_stored_template(text); !shape) check_refusal(shape.error());
  auto capacity = api::decode_pool_capacity(kJson, text);
  if (!capacity) check_refusal(capacity.error());
  if (capacity) CHECK(capacity->buffer_min <= capacity->buffer_max && capacity->pool_max <= api::kMostPooled);
  auto pool = api::decode_pool(kJson, text);
  if (!pool) return check_refusal(pool.error());
  CHECK(!pool->name.empty() && pool->name.size() <= 253 && pool->text.size() <= api::kMaxTemplate);
  CHECK(pool->capacity.pool_min >= 0 && pool->capacity.pool_min <= pool->capacity.pool_max);
  CHECK(pool->shape.image.empty() == pool->shape.snapshot_id.has_value() && !pool->shape.timeout_seconds);
  // What is stored is read again as what it was.
  CHECK(api::decode_stored_template(pool->text).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  check_create(text);
  if (auto patch = api::decode_metadata_patch(kJson, text); !patch) check_refusal(patch.error());
  if (auto until = api::decode_renewal(kJson, text); !until) check_refusal(until.error());
  if (auto commit = api::decode_commit(kJson, text); !commit) check_refusal(commit.error());
  if (auto pull = api::decode_pull(kJson, text); !pull) check_refusal(pull.error());
  if (auto push = api::decode_push(kJson, text); !push) check_refusal(push.error());
  if (auto event = api::check_metrics_event(kJson, text); !event) check_refusal(event.error());
  if (auto query = api::decode_list_query(text)) {
    CHECK(query->page >= 1 && query->page_size >= 1 && query->page_size <= 1000);
  } else {
    check_refusal(query.error());
  }
  if (auto wait = api::decode_wait_query(text)) {
    CHECK(!wait->states.empty() && wait->timeout >= std::chrono::seconds(0));
  } else {
    check_refusal(wait.error());
  }
  if (auto last = api::decode_last_event_id(text, text)) {
    CHECK(!*last || **last >= 0);
  } else {
    check_refusal(last.error());
  }
  check_snapshots(text);
  check_pools(text);
  check_limits({{"cpu", std::string(text)}, {"memory", std::string(text)}});
  return 0;
}
