// Files of a sandbox as the user of its image; api.cc has those of the sandbox's root.

#include "base/strings.h"
#include "cli/api.h"
#include "cli/api_error.h"

namespace osb::cli {
namespace {

constexpr auto kReadTime = std::chrono::minutes(5);

}  // namespace

Task<Result<void>> Api::write_files(std::string id, std::vector<UploadedFile> files) {
  return send_files(execd(id, "/files/upload"), std::move(files));
}

Task<Result<std::string>> Api::read_file(std::string id, std::string path, std::string range, size_t limit) {
  auto connection = CO_TRY(co_await connect());
  auto request = head("GET", execd(id, "/files/download?path=" + percent_encode(path)));
  if (!range.empty()) request.headers.add("Range", range);
  auto answer = CO_TRY(co_await io::with_deadline(kReadTime, "read the file",
                                                  http::fetch(connection, std::move(request), "", limit)));
  if (answer.head.status / 100 != 2) co_return std::unexpected(api_error(answer.head.status, answer.body));
  co_return std::move(answer.body);
}

}  // namespace osb::cli
