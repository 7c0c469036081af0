#include "cli/picture.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <string_view>

#include "base/fd.h"

namespace osb::cli {
namespace {

constexpr int kLastNumber = 10'000;
constexpr size_t kKittyPiece = 4096;

std::string without_line_ends(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c != '\n' && c != '\r') out.push_back(c);
  return out;
}

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

Result<std::string> decode(std::string_view base64) {
  std::string text = without_line_ends(base64), out;
  while (text.ends_with('=')) text.pop_back();
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    int value = value_of(c);
    if (value < 0) return fail(Code::corrupt, "the picture is not base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>(bits >> count & 0xff));
  }
  return out;
}

double megabytes(size_t bytes) { return static_cast<double>(bytes) / 1e6; }

// Nothing of it may end the sequence that it is put into.
bool is_base64(std::string_view text) {
  for (char c : text)
    if (value_of(c) < 0 && c != '=') return false;
  return !text.empty();
}

}  // namespace

PictureProtocol picture_protocol(const std::function<const char*(const char*)>& environment) {
  auto value = [&](const char* name) {
    const char* text = environment(name);
    return std::string_view(text ? text : "");
  };
  // Behind a multiplexer nothing of this arrives.
  if (!value("TMUX").empty() || value("TERM").starts_with("screen") || value("TERM").starts_with("tmux"))
    return PictureProtocol::none;
  if (value("TERM") == "xterm-kitty" || !value("KITTY_WINDOW_ID").empty() ||
      value("TERM_PROGRAM") == "ghostty")
    return PictureProtocol::kitty;
  std::string_view program = value("TERM_PROGRAM");
  if (program == "iTerm.app" || program == "WezTerm" || program == "vscode" || program == "mintty")
    return PictureProtocol::iterm;
  return PictureProtocol::none;
}

std::optional<std::string> inline_picture(const Picture& picture, PictureProtocol protocol) {
  std::string text = without_line_ends(picture.base64);
  if (!is_base64(text)) return std::nullopt;
  if (protocol == PictureProtocol::iterm) return "\x1b]1337;File=inline=1:" + text + "\a\n";
  if (protocol != PictureProtocol::kitty || picture.type != "image/png") return std::nullopt;
  std::string out;
  for (size_t from = 0; from < text.size(); from += kKittyPiece) {
    std::string_view piece = std::string_view(text).substr(from, kKittyPiece);
    bool more = from + kKittyPiece < text.size();
    out += fmt::format("\x1b_G{}m={};{}\x1b\\", from == 0 ? "f=100,a=T," : "", more ? 1 : 0, piece);
  }
  return out + "\n";
}

Result<std::string> PictureFiles::save(const Picture& picture) {
  std::string bytes = TRY(decode(picture.base64));
  if (files_ == most_files_ || bytes.size() > most_bytes_ - bytes_)
    return fail(
        Code::exhausted,
        fmt::format("not saved: a session saves {} pictures of {:.1f} MB in all, and this one has saved {} "
                    "of {:.1f} MB; write it to a file of the sandbox and fetch that with: osb cp",
                    most_files_, megabytes(most_bytes_), files_, megabytes(bytes_)));
  const char* ending = picture.type == "image/jpeg" ? "jpg" : "png";
  while (number_ < kLastNumber) {
    std::string name = fmt::format("osb-picture-{}.{}", ++number_, ending);
    auto written = write_file(name, bytes, O_CREAT | O_EXCL | O_NOFOLLOW);
    if (!written && written.error().sys_errno == EEXIST) continue;
    if (!written) return std::unexpected(std::move(written.error()));
    ++files_;
    bytes_ += bytes.size();
    return name;
  }
  return fail(Code::exhausted, "there are too many pictures in this directory");
}

}  // namespace osb::cli
