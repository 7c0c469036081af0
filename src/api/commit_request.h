#pragma once

// POST /images/commit: which sandbox or snapshot becomes an image, under which name, and what the image says
// about its processes.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/error.h"

namespace osb::api {

struct CommitBody {
  std::string sandbox, snapshot;  // exactly one is not empty
  std::string name;
  // What is absent is as the image below says.
  std::vector<std::pair<std::string, std::string>> env = {};
  std::map<std::string, std::string> labels = {};
  std::vector<std::string> ports = {};
  std::optional<std::string> user = {}, workdir = {};
  std::optional<std::vector<std::string>> entrypoint = {}, cmd = {};
};
ApiResult<CommitBody> decode_commit(std::string_view content_type, std::string_view body);

}  // namespace osb::api
