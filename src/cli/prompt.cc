#include "cli/prompt.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/strings.h"

namespace osb::cli {
namespace {

constexpr size_t kMaxHistoryFile = 1 << 20;
constexpr size_t kMaxListed = 60;
constexpr std::string_view kIndent = "    ";

// Keys come as they are typed and are shown by us; signals stay signals.
class KeyMode {
 public:
  KeyMode() {
    if (::tcgetattr(STDIN_FILENO, &before_) < 0) return;
    termios keys = before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    changed_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &keys) == 0;
  }
  ~KeyMode() {
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  KeyMode(const KeyMode&) = delete;

 private:
  termios before_{};
  bool changed_ = false;
};

size_t columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool goes_into_words(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '$';
}

std::string_view last_word(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && goes_into_words(text[begin - 1])) --begin;
  return text.substr(begin);
}

io::Task<> readable(io::asio::posix::stream_descriptor& input) { (void)co_await io::wait_readable(input); }

void write_out(std::string_view text) { (void)write_all(STDOUT_FILENO, text); }

}  // namespace

Prompt::Prompt(const std::string& name, Complete complete) : complete_(std::move(complete)) {
  const char* home = std::getenv("HOME");
  if (!home || *home != '/') return;
  std::string directory = std::string(home) + "/.opensandbox";
  history_file_ = directory + "/history-" + name;
  auto text = read_file(history_file_, kMaxHistoryFile);
  // One that became too large begins anew.
  if (!text && text.error().code == Code::too_large) ::unlink(history_file_.c_str());
  if (!text) return;
  for (std::string_view line : split(*text, '\n')) editor_.remember(std::string(line));
}

void Prompt::keep(const std::string& line) {
  size_t before = editor_.history().size();
  bool repeated = before > 0 && editor_.history().back() == line;
  editor_.remember(line);
  if (history_file_.empty() || repeated || editor_.history().empty() || editor_.history().back() != line)
    return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(history_file_).parent_path(), ignored);
  (void)write_file(history_file_, line + "\n", O_CREAT | O_APPEND, 0600);
}

io::Task<> Prompt::complete() {
  std::string word(last_word(editor_.before_cursor()));
  bool pasted = typed_.find_first_not_of('\t') != typed_.npos;
  if (word.empty() || pasted) co_return write_out(editor_.insert(kIndent));  // a paste has no wishes
  std::vector<std::string> found = co_await complete_(word);
  std::erase_if(found, [&](const std::string& one) { return !one.starts_with(word); });
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  if (found.empty()) co_return;
  std::string common = found.front();
  for (const std::string& one : found)
    common.resize(static_cast<size_t>(std::ranges::mismatch(common, one).in1 - common.begin()));
  if (common.size() > word.size())
    co_return write_out(editor_.insert(std::string_view(common).substr(word.size())));
  if (found.size() == 1) co_return;
  if (found.size() > kMaxListed) {
    found.resize(kMaxListed);
    found.emplace_back("...");
  }
  write_out(editor_.list(found));
}

io::Task<Result<std::string>> Prompt::read(std::string prompt, io::asio::posix::stream_descriptor& input,
                                           Signals& signals, int heard) {
  using What = LineEditor::Step::What;
  KeyMode mode;
  write_out(editor_.begin(std::move(prompt), columns()));
  while (true) {
    while (!typed_.empty()) {
      char byte = typed_.front();
      typed_.erase(0, 1);
      auto step = editor_.feed(byte);
      write_out(step.shown);
      if (step.what == What::end) co_return fail(Code::not_found, "end of input");
      if (step.what == What::complete) co_await complete();
      if (step.what != What::line) continue;
      keep(editor_.line());
      co_return editor_.line();
    }
    if (co_await io::race(readable(input), signals.more_than(heard)) == 1)
      co_return fail(Code::cancelled, "interrupted");
    char buffer[4096];
    ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) co_return fail(Code::not_found, "end of input");
    typed_.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace osb::cli
