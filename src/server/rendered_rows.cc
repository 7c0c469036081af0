#include "server/rendered_rows.h"

#include "api/sandbox_json.h"

namespace osb::server {

const std::string& RenderedRows::of(const sandbox::SandboxPtr& row, std::string_view standard) {
  if (auto found = rows_.find(row.get()); found != rows_.end()) return found->second.text;
  // About what a row and its places here take, beside the text.
  constexpr size_t kBesideText = 1024;
  std::string text;
  text.reserve(640);
  api::append_sandbox(text, *row, standard);
  text.shrink_to_fit();
  if (bytes_ > kMaxBytes) {
    rows_.clear();
    bytes_ = 0;
  }
  bytes_ += text.size() + kBesideText;
  return rows_.emplace(row.get(), Row{row, std::move(text)}).first->second.text;
}

}  // namespace osb::server
