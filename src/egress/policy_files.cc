#include "egress/policy_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/ids.h"
#include "json/decode.h"
#include "json/escape.h"
#include "sys/directory.h"

namespace osb::egress {
namespace {

constexpr std::string_view kUnfinished = ".new";

}  // namespace

std::string to_text(const KeptPolicy& kept) {
  std::string out = "{\"version\":1,\"id\":";
  json::append_string(out, kept.id);
  return out + ",\"policy\":" + to_json(kept.policy) + "}\n";
}

Result<KeptPolicy> parse_kept(std::string_view text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "policy file", json::Reading::exact);
  KeptPolicy kept;
  bool known = field["version"].integer().value_or(0) == 1;
  kept.id = field["id"].string().value_or("");
  const auto* policy = field["policy"].raw();
  if (!known || policy == nullptr || !issues.empty())
    return fail(Code::corrupt, "a policy file that cannot be read");
  kept.policy = TRY(parse_policy(json::print(*policy)));
  return kept;
}

Result<std::vector<std::string>> PolicyFiles::list() const {
  std::vector<std::string> handles = TRY(sys::names_in(directory_.get()));
  std::erase_if(handles, [&](const std::string& name) {
    if (name.ends_with(kUnfinished)) ::unlinkat(directory_.get(), name.c_str(), 0);
    return !is_uuid(name);
  });
  return handles;
}

Result<KeptPolicy> PolicyFiles::read(const std::string& handle) const {
  Fd file = TRY(open_beneath(directory_.get(), handle, O_RDONLY));
  return parse_kept(TRY(read_all(file.get(), 2 * kMostPolicyBytes)));
}

Result<void> PolicyFiles::write(const std::string& handle, const KeptPolicy& kept) const {
  std::string unfinished = handle + std::string(kUnfinished);
  TRY(write_file_at(directory_.get(), unfinished, to_text(kept), O_CREAT | O_TRUNC, 0600));
  if (::renameat(directory_.get(), unfinished.c_str(), directory_.get(), handle.c_str()) < 0)
    return fail_errno("keep a policy");
  return {};
}

void PolicyFiles::remove(const std::string& handle) const {
  (void)::unlinkat(directory_.get(), handle.c_str(), 0);
}

}  // namespace osb::egress
