#include "launcher/network_notes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace osb::launcher {
namespace {

constexpr char kNote[] = "network";
constexpr std::string_view kPolicy = "policy";
constexpr std::string_view kNone = "none";

}  // namespace

Result<void> write_network_note(int directory, PlanNetwork::Kind kind) {
  if (kind == PlanNetwork::Kind::open) return {};
  Fd file = TRY(open_beneath(directory, kNote, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  return in_context("note the sandbox's network",
                    write_all(file.get(), kind == PlanNetwork::Kind::policy ? kPolicy : kNone));
}

PlanNetwork::Kind read_network_note(int directory) {
  auto file = open_beneath(directory, kNote, O_RDONLY);
  if (!file && file.error().code == Code::not_found) return PlanNetwork::Kind::open;
  auto text = file ? read_all(file->get(), kPolicy.size()) : Result<std::string>("");
  return text && *text == kPolicy ? PlanNetwork::Kind::policy : PlanNetwork::Kind::none;
}

Result<void> remove_network_note(int directory) {
  if (::unlinkat(directory, kNote, 0) < 0 && errno != ENOENT) return fail_errno("remove a network's note");
  return {};
}

}  // namespace osb::launcher
