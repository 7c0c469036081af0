#include "http/multipart.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"
#include "http/head_parse.h"
#include "http/header_params.h"

namespace osb::http {
namespace {

constexpr size_t kMaxPartHead = 16 * 1024;
constexpr size_t kMaxPreamble = 16 * 1024;
constexpr size_t kMaxParts = 1000;
constexpr size_t kMaxPadding = 64;  // blanks between a boundary and the end of its line
constexpr size_t kBufferBytes = 64 * 1024;
static_assert(kBufferBytes > kMaxPartHead + 128, "a head and the boundary before it fit");

std::unexpected<Error> bad(std::string what) {
  return fail(Code::invalid_argument, "multipart: " + std::move(what));
}

// Parts say in Content-Disposition which field of the form they are.
Result<void> read_disposition(std::string_view value, PartHead& head) {
  auto disposition = TRY(in_context("multipart: Content-Disposition", parse_parameters(value)));
  if (disposition.word != "form-data") return bad("Content-Disposition is not form-data");
  const std::string* name = disposition.find("name");
  if (name == nullptr) return bad("Content-Disposition has no name");
  head.name = *name;
  if (const std::string* filename = disposition.find("filename")) head.filename = *filename;
  if (const std::string* filename = disposition.find("filename*")) {
    head.filename = TRY(in_context("multipart: filename*", decode_extended(*filename)));
  }
  return {};
}

// `text` is empty or lines that each end in CRLF.
Result<PartHead> parse_head(std::string_view text) {
  PartHead head;
  bool disposed = false;
  while (!text.empty()) {
    size_t end = text.find("\r\n");
    std::string_view name, value;
    if (auto rejected = split_field(text.substr(0, end), name, value))
      return bad(std::string(rejected->reason));
    text.remove_prefix(end + 2);
    if (iequals(name, "Content-Disposition")) {
      if (std::exchange(disposed, true)) return bad("Content-Disposition is given twice");
      TRY(read_disposition(value, head));
    } else if (iequals(name, "Content-Transfer-Encoding")) {
      bool verbatim = iequals(value, "binary") || iequals(value, "8bit") || iequals(value, "7bit");
      if (!verbatim)
        return fail(Code::unsupported, "multipart: Content-Transfer-Encoding " + std::string(value));
    }
    head.headers.add(std::string(name), std::string(value));
  }
  if (!disposed) return bad("a part without Content-Disposition");
  return head;
}

bool is_boundary(std::string_view text) {
  for (char c : text) {
    bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!alnum && (c == '\0' || !std::string_view("'()+_,-./:=? ").contains(c))) return false;
  }
  return !text.empty() && text.size() <= 70 && text.back() != ' ';
}

}  // namespace

// The buffer, from begin_ to end_, holds what was read from the body and not yet given out. In a part (and in
// the preamble, which is like a part that nobody reads), [begin_, data_end_) is known to be content, and the
// delimiter starts at data_end_ when at_delimiter_. Behind data_end_ there may be the beginning of a
// delimiter, which only more bytes can decide.
struct MultipartReader::Impl {
  enum class Place { preamble, head, part_start, part, after_last, failed };

  Impl(BodyReader& source, const std::string& boundary) : body(source), delimiter("\r\n--" + boundary) {
    // The first boundary may stand at the very beginning: give it the line end that precedes all others.
    std::memcpy(buffer.get(), "\r\n", 2);
    end = 2;
  }

  std::string_view unread() const { return {buffer.get() + begin, end - begin}; }

  std::unexpected<Error> stop(Error why) {
    place = Place::failed;
    error = std::move(why);
    return std::unexpected(error);
  }

  Task<Result<void>> fill();
  Task<Result<size_t>> read_body(std::span<char> into);
  Task<Result<size_t>> read_direct(std::span<char> into);
  void find_delimiter();
  size_t content_of(std::string_view bytes, bool& found) const;
  Task<Result<void>> find_content();
  Task<Result<void>> end_part();
  Task<Result<PartHead>> read_head();

  BodyReader& body;
  const std::string delimiter;
  std::unique_ptr<char[]> buffer = std::make_unique_for_overwrite<char[]>(kBufferBytes);
  size_t begin = 0, data_end = 0, end = 0;
  bool at_delimiter = false;
  bool ended = false;  // the body
  Place place = Place::preamble;
  size_t parts = 0;
  Error error;
};

// Reads at least one more byte. Every caller keeps less in the buffer than it can hold.
Task<Result<void>> MultipartReader::Impl::fill() {
  if (begin > 0) {
    std::memmove(buffer.get(), buffer.get() + begin, end - begin);
    data_end -= begin;
    end -= begin;
    begin = 0;
  }
  end += CO_TRY(co_await read_body({buffer.get() + end, kBufferBytes - end}));
  co_return Result<void>();
}

Task<Result<size_t>> MultipartReader::Impl::read_body(std::span<char> into) {
  auto got = co_await body.read_some(into);
  if (!got) co_return stop(std::move(got).error());
  ended = *got == 0;
  if (ended) co_return stop(bad("the body ends before the last boundary").error());
  co_return got;
}

void MultipartReader::Impl::find_delimiter() {
  data_end += content_of({buffer.get() + data_end, end - data_end}, at_delimiter);
}

// How many of the bytes are content: up to the delimiter, or to what may be its beginning.
size_t MultipartReader::Impl::content_of(std::string_view bytes, bool& found) const {
  const void* at = ::memmem(bytes.data(), bytes.size(), delimiter.data(), delimiter.size());
  found = at != nullptr;
  if (found) return static_cast<size_t>(static_cast<const char*>(at) - bytes.data());
  size_t tail = bytes.size() - std::min(bytes.size(), delimiter.size() - 1);
  while (tail < bytes.size() && !delimiter.starts_with(bytes.substr(tail))) ++tail;
  return tail;
}

// Straight to where they belong, while nothing else can be next: most bytes of a large file. What is not
// content goes to the buffer, which has room for all of it.
Task<Result<size_t>> MultipartReader::Impl::read_direct(std::span<char> into) {
  into = into.first(std::min(into.size(), kBufferBytes));
  size_t got = CO_TRY(co_await read_body(into));
  bool found = false;  // which find_content() will see for itself
  size_t content = content_of({into.data(), got}, found);
  begin = data_end = 0;
  end = got - content;
  if (end > 0) std::memcpy(buffer.get(), into.data() + content, end);
  co_return content;
}

// Makes sure that there is content, or that the delimiter is next.
Task<Result<void>> MultipartReader::Impl::find_content() {
  while (begin == data_end && !at_delimiter) {
    if (place == Place::part_start) {
      // A part may lack its content altogether: then the line end of its head is that of the delimiter.
      std::string_view start = unread().substr(0, delimiter.size());
      if (!delimiter.starts_with(start)) {
        begin = data_end = begin + 2;
        place = Place::part;
      } else if (start.size() == delimiter.size()) {
        at_delimiter = true;
        break;
      }
    }
    if (place != Place::part_start) find_delimiter();
    if (begin == data_end && !at_delimiter) CO_TRY(co_await fill());
  }
  co_return Result<void>();
}

// Reads the rest of the delimiter's line. A line that only starts like a delimiter is refused: content cannot
// hold it, and to guess would mean to cut a file or to swallow a part.
Task<Result<void>> MultipartReader::Impl::end_part() {
  begin = data_end;
  at_delimiter = false;
  while (true) {
    std::string_view rest = unread().substr(delimiter.size());
    bool last = rest.starts_with("--");
    size_t blanks = std::min(rest.find_first_not_of(" \t", last ? 2 : 0), rest.size());
    std::string_view line_end = rest.substr(blanks, 2);
    bool undecided = line_end.empty() || line_end == "\r" || rest == "-";
    if (blanks > kMaxPadding || (!undecided && line_end != "\r\n")) {
      co_return stop(bad("text follows a boundary on its line").error());
    }
    if (!undecided) {  // the line end stays: it may be the first of the two that end a head
      begin = data_end = end - rest.size() + blanks;
      place = last ? Place::after_last : Place::head;
      co_return Result<void>();
    }
    auto more = co_await fill();
    if (!more && ended && last && line_end.empty()) {
      place = Place::after_last;  // the line end after the last boundary is optional
      co_return Result<void>();
    }
    if (!more) co_return more;
  }
}

Task<Result<PartHead>> MultipartReader::Impl::read_head() {
  if (++parts > kMaxParts) co_return stop(fail(Code::too_large, "multipart: more than 1000 parts").error());
  size_t searched = 0;
  size_t at;
  while ((at = unread().find("\r\n\r\n", searched)) == std::string_view::npos) {
    if (unread().size() >= kMaxPartHead + 4) break;
    searched = std::max<size_t>(unread().size(), 3) - 3;
    CO_TRY(co_await fill());
  }
  if (at > kMaxPartHead)
    co_return stop(fail(Code::too_large, "multipart: the head of a part is too long").error());
  auto head = parse_head(unread().substr(2, at));  // "\r\n" lines "\r\n": without the first line end
  if (!head) co_return stop(std::move(head).error());
  begin = data_end = begin + at + 2;
  place = Place::part_start;
  co_return head;
}

Result<std::string> MultipartReader::boundary_of(std::string_view content_type) {
  auto type = TRY(in_context("Content-Type", parse_parameters(content_type)));
  if (type.word != "multipart/form-data")
    return fail(Code::invalid_argument, "Content-Type is not multipart/form-data");
  const std::string* boundary = type.find("boundary");
  if (boundary == nullptr) return fail(Code::invalid_argument, "Content-Type has no boundary");
  if (!is_boundary(*boundary))
    return fail(Code::invalid_argument, "the boundary in Content-Type is not a legal one");
  return *boundary;
}

MultipartReader::MultipartReader(BodyReader& body, std::string boundary)
    : impl_(std::make_unique<Impl>(body, boundary)) {}
MultipartReader::~MultipartReader() = default;

Task<Result<std::optional<PartHead>>> MultipartReader::next() {
  Impl& r = *impl_;
  size_t preamble = 0;
  while (r.place == Impl::Place::preamble || r.place == Impl::Place::part_start ||
         r.place == Impl::Place::part) {
    CO_TRY(co_await r.find_content());
    if (r.place == Impl::Place::preamble) preamble += r.data_end - r.begin;
    if (preamble > kMaxPreamble) co_return r.stop(bad("no boundary near the start of the body").error());
    r.begin = r.data_end;
    if (r.at_delimiter) CO_TRY(co_await r.end_part());
  }
  if (r.place == Impl::Place::failed) co_return std::unexpected(r.error);
  if (r.place == Impl::Place::after_last) co_return std::nullopt;
  co_return CO_TRY(co_await r.read_head());
}

Task<Result<size_t>> MultipartReader::read_some(std::span<char> into) {
  Impl& r = *impl_;
  if (r.place == Impl::Place::failed) co_return std::unexpected(r.error);
  if (r.place != Impl::Place::part_start && r.place != Impl::Place::part) co_return size_t{0};
  if (r.place == Impl::Place::part && r.begin == r.end && !into.empty()) {
    size_t content = CO_TRY(co_await r.read_direct(into));
    if (content > 0) co_return content;
  }
  CO_TRY(co_await r.find_content());
  if (r.begin == r.data_end) {
    CO_TRY(co_await r.end_part());
    co_return size_t{0};
  }
  size_t n = std::min(into.size(), r.data_end - r.begin);
  if (n > 0) std::memcpy(into.data(), r.buffer.get() + r.begin, n);
  r.begin += n;
  co_return n;
}

}  // namespace osb::http
