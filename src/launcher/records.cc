#include "launcher/records.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace osb::launcher {
namespace {

constexpr char kRecord[] = "record";
constexpr char kNext[] = "record.next";

}  // namespace

Result<void> write_record(int directory, std::string_view record) {
  if (record.size() > kMaxRecord) return fail(Code::permission_denied, "refused: the record is too long");
  // A new one is made under its name: whoever is killed meanwhile has no sandbox to find again. One that is
  // replaced must not be lost half way.
  const char* name = ::faccessat(directory, kRecord, F_OK, 0) == 0 ? kNext : kRecord;
  Fd file = TRY(open_beneath(directory, name, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  TRY(in_context("write the sandbox's record", write_all(file.get(), record)));
  if (name == kNext && ::renameat(directory, kNext, directory, kRecord) < 0)
    return fail_errno("replace the sandbox's record");
  return {};
}

Result<std::string> read_record(int directory) {
  auto file = open_beneath(directory, kRecord, O_RDONLY);
  if (!file && file.error().code == Code::not_found) return "";
  if (!file) return std::unexpected(std::move(file.error()));
  return read_all(file->get(), kMaxRecord);
}

Result<void> remove_record(int directory) {
  for (const char* name : {kRecord, kNext}) {
    if (::unlinkat(directory, name, 0) < 0 && errno != ENOENT)
      return fail_errno("remove the sandbox's record");
  }
  return {};
}

}  // namespace osb::launcher
