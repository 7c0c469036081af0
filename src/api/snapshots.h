#pragma once

// Snapshots on the wire: the body that makes one, the query that lists them, and what is printed of them.

#include <optional>
#include <string>
#include <string_view>

#include "api/error.h"
#include "sandbox/snapshot.h"

namespace osb::api {

// The body may be empty. Its name, if it has one.
ApiResult<std::optional<std::string>> decode_snapshot(std::string_view content_type, std::string_view body);

struct SnapshotQuery {
  sandbox::SnapshotFilter filter = {};
  int64_t page = 1, page_size = 20;
};
ApiResult<SnapshotQuery> decode_snapshot_query(std::string_view raw_query);

void append_snapshot(std::string& out, const sandbox::Snapshot& snapshot);

// {"changes": [{"kind": "Added", "path": "/x"}, ...]}. Bytes of a path that are no UTF-8 become U+FFFD.
std::string changes_json(const std::vector<sandbox::FileChange>& changes);

// {"count": 1 to kMostForks}; an empty body asks for one.
inline constexpr int64_t kMostForks = 256;
ApiResult<int64_t> decode_fork(std::string_view content_type, std::string_view body);

// {"snapshotId": "..."}
ApiResult<std::string> decode_rollback(std::string_view content_type, std::string_view body);

}  // namespace osb::api
