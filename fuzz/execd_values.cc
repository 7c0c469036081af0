// Small things that execd reads from clients and from files a sandbox can write: ranges, dates, accounts, a
// process's line in /proc with the name the process gave itself.
#include "check.h"
#include "execd/byte_range.h"
#include "execd/http_date.h"
#include "execd/line_range.h"
#include "execd/proc_stat.h"
#include "execd/users.h"

using namespace osb;
using namespace osb::execd;

namespace {

void check_range(std::string_view text, uint64_t size) {
  auto range = parse_range(text, size);
  if (!range || !*range) return;
  CHECK((*range)->first <= (*range)->last && (*range)->last < size);
}

// A range of lines is the same in whatever pieces the file comes.
void check_lines(std::string_view text, size_t piece) {
  LineRange range{.first = 2, .count = 3};
  LineCutter whole(range), cut(range);
  std::string at_once = whole.feed(text), joined;
  for (size_t at = 0; at < text.size() && !cut.done(); at += piece)
    joined += cut.feed(text.substr(at, piece));
  CHECK(joined == at_once && joined.size() <= text.size());
  std::string number(text);
  if (auto parsed = parse_line_range(number, number); parsed && *parsed)
    CHECK((*parsed)->first >= 1 && (*parsed)->count >= 1);
}

void check_users(std::string_view text) {
  Users users = Users::parse(text, text);
  for (std::string_view name : {"root", "app", "4294967295", "-1", ""}) {
    if (auto uid = resolve_user(users, name)) CHECK(*uid != static_cast<uid_t>(-1));
    if (auto gid = resolve_group(users, name)) CHECK(*gid != static_cast<gid_t>(-1));
    if (const User* user = users.find(name)) (void)users.groups_of(*user);
  }
}

// Whatever a process calls itself, its numbers are those of the kernel.
void check_proc_stat(std::string_view name) {
  (void)parse_proc_stat(name);
  (void)parse_last_pid(name);
  auto stat =
      parse_proc_stat("7 (" + std::string(name) + ") S 1 2 3 0 -1 0 0 0 0 0 12 3 0 0 20 0 1 0 4242 0 0 0");
  CHECK(stat && stat->state == 'S' && stat->parent == 1 && stat->group == 2 && stat->session == 3);
  CHECK(stat->cpu_ticks == 15 && stat->start_ticks == 4242);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  for (uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, UINT64_MAX}) check_range(text, length);
  if (auto date = parse_http_date(text)) CHECK(parse_http_date(format_http_date(*date)) == *date);
  check_lines(text, size > 0 ? 1 + data[0] % 7 : 1);
  check_users(text);
  check_proc_stat(text);
  return 0;
}
