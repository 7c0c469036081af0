#include "launcher/snapshot_workers.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <array>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/strings.h"
#include "launcher/confined.h"
#include "sys/descriptors.h"
#include "sys/namespaces.h"
#include "sys/tree_copy.h"

namespace osb::launcher {
namespace {

constexpr char kOpaque[] = "trusted.overlay.opaque";
constexpr size_t kMaxMessage = 2048;
// Of nobody: right below those of the sandboxes, as the workers of imports have them.
constexpr uint32_t kComparersFirstId = 0x6fff0000;

// Messages: one letter and a text.
//   r  the copying process is ready; answered by "g" when it is to begin
//   d  directories of the tree and then of its copy, as descriptors; answered by a letter for each, y or n
//   l  a layer is done: index, digest, bytes, entries
//   s  both are the same: y or n
//   e  it failed: a code, an errno and a sentence

[[noreturn]] void say(int socket, const std::string& text) {
  (void)sys::send_with_descriptors(socket, std::string_view(text).substr(0, kMaxMessage), {});
  ::_exit(0);
}

[[noreturn]] void say_failure(int socket, const Error& error) {
  say(socket, "e" + std::to_string(static_cast<int>(error.code)) + " " + std::to_string(error.sys_errno) +
                  " " + error.message.substr(0, 1000));
}

// In the confined process.

Result<std::vector<bool>> ask_marks(int socket, const std::vector<int>& from, const std::vector<int>& to) {
  std::vector<int> both = from;
  both.insert(both.end(), to.begin(), to.end());
  if (int sent = sys::send_with_descriptors(socket, "d", both); sent < 0)
    return fail_errno("ask for marks", -sent);
  std::array<char, sys::kMostMarks> answer{};
  std::vector<Fd> none;
  size_t n = TRY(sys::receive_with_descriptors(socket, answer, none));
  if (n != from.size()) return fail(Code::unavailable, "nobody says which directories are marked");
  std::vector<bool> marks;
  for (size_t i = 0; i < n; ++i) marks.push_back(answer[i] == 'y');
  return marks;
}

void copy_all(const std::vector<int>& directories, int socket) {
  char go = 0;
  std::vector<Fd> none;
  if (sys::send_with_descriptors(socket, "r", {}) < 0) ::_exit(1);
  auto begun = sys::receive_with_descriptors(socket, std::span(&go, 1), none);
  if (!begun || go != 'g') ::_exit(1);
  auto marks = [&](const std::vector<int>& from, const std::vector<int>& to) {
    return ask_marks(socket, from, to);
  };
  for (size_t i = 0; i + 1 < directories.size(); i += 2) {
    auto copied = sys::copy_tree(directories[i], directories[i + 1], marks);
    if (!copied) say_failure(socket, copied.error());
    std::string text = "l" + std::to_string(i / 2) + " " + to_hex(copied->digest) + " " +
                       std::to_string(copied->bytes) + " " + std::to_string(copied->entries);
    if (sys::send_with_descriptors(socket, text, {}) < 0) ::_exit(1);
  }
}

void compare(const std::vector<int>& directories, int socket) {
  auto same = sys::same_files(directories[0], directories[1]);
  if (!same) say_failure(socket, same.error());
  say(socket, *same ? "sy" : "sn");
}

// With rights: what the process says is a stranger's by now, and its descriptors may be any that it has.

Result<void> answer_marks(int socket, const std::vector<Fd>& both) {
  if (both.empty() || both.size() % 2 != 0) return fail(Code::internal, "the copying process spoke nonsense");
  std::string answer;
  for (size_t i = 0; i < both.size() / 2; ++i) {
    char value = 'n';
    bool opaque = ::fgetxattr(both[i].get(), kOpaque, &value, 1) == 1 && value == 'y';
    if (opaque && ::fsetxattr(both[i + both.size() / 2].get(), kOpaque, "y", 1, 0) < 0)
      return fail_errno("mark a directory of the copy");
    answer.push_back(opaque ? 'y' : 'n');
  }
  if (int sent = sys::send_with_descriptors(socket, answer, {}); sent < 0)
    return fail_errno("answer the copying process", -sent);
  return {};
}

Error failure_of(std::string_view text) {
  size_t first = text.find(' '), second = first == text.npos ? first : text.find(' ', first + 1);
  auto code = parse_number<int>(text.substr(0, first));
  bool known = code && *code >= 0 && *code <= static_cast<int>(Code::internal) && second != text.npos;
  if (!known) return {Code::internal, 0, "the confined process spoke nonsense"};
  auto number = parse_number<int>(text.substr(first + 1, second - first - 1));
  return {static_cast<Code>(*code), number.value_or(0), std::string(text.substr(second + 1))};
}

Result<void> note_layer(std::string_view text, std::vector<CopiedLayer>& layers) {
  auto words = split(text, ' ');
  if (words.size() != 4 || !is_hex_digest(words[1]))
    return fail(Code::internal, "the copying process spoke nonsense");
  auto index = parse_number<size_t>(words[0]);
  auto bytes = parse_number<uint64_t>(words[2]), entries = parse_number<uint64_t>(words[3]);
  if (!index || *index >= layers.size() || !bytes || !entries)
    return fail(Code::internal, "the copying process spoke nonsense");
  layers[*index] = {std::string(words[1]), *bytes, *entries};
  return {};
}

Result<std::vector<CopiedLayer>> hear_copies(int socket, size_t count, const Halfway& halfway) {
  std::vector<CopiedLayer> layers(count);
  std::string buffer(kMaxMessage + 1, '\0');
  while (true) {
    std::vector<Fd> descriptors;
    size_t n = TRY(sys::receive_with_descriptors(socket, buffer, descriptors));
    if (n == 0) break;
    std::string_view text(buffer.data() + 1, n - 1);
    if (buffer[0] == 'r') {
      TRY(halfway());
      if (int sent = sys::send_with_descriptors(socket, "g", {}); sent < 0)
        return fail_errno("begin to copy", -sent);
    } else if (buffer[0] == 'd') {
      TRY(answer_marks(socket, descriptors));
    } else if (buffer[0] == 'l') {
      TRY(note_layer(text, layers));
    } else {
      return std::unexpected(failure_of(text));
    }
  }
  for (const CopiedLayer& layer : layers) {
    if (layer.digest.empty()) return fail(Code::internal, "the copying process ended without a word");
  }
  return layers;
}

}  // namespace

Result<std::vector<CopiedLayer>> copy_layers(const CopyOrder& order, const Halfway& halfway) {
  Fd space = TRY(sys::create_user_namespace(order.first_id, kConfinedIds));
  ConfinedOrder confined{order.place, space.get(), {}, copy_all};
  std::vector<Fd> opened;
  for (const CopyOrder::Pair& pair : order.pairs) {
    int from = pair.from;
    if (!pair.is_mounted_alone) from = opened.emplace_back(TRY(readable_directory(pair.from))).get();
    confined.directories.push_back(from);
    confined.directories.push_back(opened.emplace_back(TRY(mapped_directory(pair.to, space.get()))).get());
  }
  ConfinedProcess process = TRY(start_confined(confined));
  Cleanup undo;
  undo.push([&] { end_confined(process); });
  return hear_copies(process.socket.get(), order.pairs.size(), halfway);
}

Result<bool> same_layers(int one, int other, const std::string& place) {
  Fd space = TRY(sys::create_user_namespace(kComparersFirstId, kConfinedIds));
  Fd first = TRY(mapped_directory(one, space.get())), second = TRY(mapped_directory(other, space.get()));
  ConfinedOrder confined{place, space.get(), {first.get(), second.get()}, compare};
  ConfinedProcess process = TRY(start_confined(confined));
  Cleanup undo;
  undo.push([&] { end_confined(process); });
  std::string buffer(kMaxMessage + 1, '\0');
  std::vector<Fd> none;
  size_t n = TRY(sys::receive_with_descriptors(process.socket.get(), buffer, none));
  if (n == 2 && buffer[0] == 's') return buffer[1] == 'y';
  if (n > 0) return std::unexpected(failure_of(std::string_view(buffer.data() + 1, n - 1)));
  return fail(Code::internal, "the comparing process ended without a word");
}

}  // namespace osb::launcher
