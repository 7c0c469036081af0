// GET /files/download: a whole file, a byte range of it, or some of its lines.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/strings.h"
#include "execd/byte_range.h"
#include "execd/file_routes.h"
#include "execd/http_date.h"
#include "execd/line_range.h"
#include "execd/page_pipe.h"
#include "execd/paths.h"
#include "execd/piece.h"

namespace osb::execd {
namespace {

constexpr size_t kPiece = 256 * 1024;
constexpr uint64_t kSmall = 256 * 1024;

struct OpenFile {
  Fd fd;
  std::string path;
  struct stat info{};
};
using Opened = std::shared_ptr<OpenFile>;

std::expected<Opened, ApiError> open_for_reading(const Core& core, const std::string& path) {
  auto file = std::make_shared<OpenFile>();
  file->path = TRY(resolve_path(path, core.env, core.cwd));
  // Not blocking: opening a pipe would wait for a writer.
  file->fd = TRY(open_at(AT_FDCWD, file->path, O_RDONLY | O_NONBLOCK));
  if (::fstat(file->fd.get(), &file->info) < 0) return fail_errno(file->path);
  if (!S_ISREG(file->info.st_mode)) {
    return std::unexpected(
        bad_request(file->path + (S_ISDIR(file->info.st_mode) ? " is a directory" : " is not a file")));
  }
  return file;
}

// Fewer bytes only at the end of the file.
Result<size_t> read_into(const OpenFile& file, uint64_t offset, char* into, size_t limit) {
  size_t done = 0;
  while (done < limit) {
    ssize_t n = ::pread(file.fd.get(), into + done, limit - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("read " + file.path);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

Result<std::string> read_piece(const OpenFile& file, uint64_t offset, size_t limit) {
  std::string out(limit, '\0');
  out.resize(TRY(read_into(file, offset, out.data(), limit)));
  return out;
}

// attachment; filename="a.txt"   or, when the name is not plain ASCII, with the RFC 5987 form as well
std::string disposition(std::string_view name) {
  bool plain = true;
  for (unsigned char c : name) plain = plain && c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
  if (plain) return "attachment; filename=\"" + std::string(name) + "\"";
  std::string encoded = percent_encode(name);
  return "attachment; filename=\"" + encoded + "\"; filename*=UTF-8''" + encoded;
}

bool changed_since(const OpenFile& file, std::string_view date) {
  auto parsed = parse_http_date(date);
  return !parsed || file.info.st_mtim.tv_sec > *parsed;
}

// A part of a file between its two moments: read by a worker, sent by the loop.
Result<void> read_part(const OpenFile& file, uint64_t offset, size_t size, Piece& piece) {
  piece.size = TRY(read_into(file, offset, piece.data.get(), size));
  return {};
}
Result<void> read_part(const OpenFile& file, uint64_t offset, size_t size, PagePipe& pipe) {
  return pipe.fill(file.fd.get(), offset, size);
}
io::Task<Result<void>> send_part(http::ResponseWriter& response, Piece& piece) {
  return response.write(piece.view());
}
io::Task<Result<void>> send_part(http::ResponseWriter& response, PagePipe& pipe) {
  return response.write_pipe(pipe.reader(), pipe.size);
}

template <class Part>
io::Task<> send_parts(Workers& workers, Opened file, http::ResponseWriter& response, uint64_t at,
                      uint64_t end) {
  auto read_at = [&workers, file, end](uint64_t offset, Part into) {
    size_t size = static_cast<size_t>(std::min<uint64_t>(Part::kCapacity, end - offset));
    return workers.begin(std::nullopt,
                         [file, offset, size, into = std::move(into)]() mutable -> Result<Part> {
                           TRY(read_part(*file, offset, size, into));
                           return std::move(into);
                         });
  };
  // One part is read while the other is on its way.
  Part spare;
  bool first = true;
  auto reading = read_at(at, Part());
  while (at < end) {
    auto part = co_await reading.wait();
    if (!part && part.error().code == Code::unsupported && std::exchange(first, false))
      co_return co_await send_parts<Piece>(workers, file, response, at, end);
    // The file has become shorter than was promised: a cut answer says so.
    if (!part || part->size == 0) co_return response.abort();
    first = false;
    at += part->size;
    if (at < end) reading = read_at(at, std::move(spare));
    if (!co_await send_part(response, *part)) co_return;
    spare = std::move(*part);
  }
  co_await response.finish();
}

// Of a small file the head of the answer and the content go out together, which a pipe could not do.
io::Task<> send_bytes(Workers& workers, Opened file, http::ResponseWriter& response, uint64_t at,
                      uint64_t end) {
  return end - at > kSmall ? send_parts<PagePipe>(workers, std::move(file), response, at, end)
                           : send_parts<Piece>(workers, std::move(file), response, at, end);
}

// Files of the kernel have no size but content.
io::Task<> send_unsized(Workers& workers, Opened file, http::ResponseWriter& response,
                        http::Headers headers) {
  constexpr size_t kLimit = 16 << 20;
  auto text = co_await workers.run(std::nullopt,
                                   [file]() -> Result<std::string> { return read_piece(*file, 0, kLimit); });
  if (!text) co_return co_await reply_error(response, ApiError(text.error()));
  co_await response.send(200, std::move(headers), std::move(*text));
}

io::Task<> send_lines(Workers& workers, Opened file, http::ResponseWriter& response, LineRange range) {
  auto cutter = std::make_shared<LineCutter>(range);
  const http::Headers headers{{"Content-Type", "text/plain; charset=utf-8"}};
  uint64_t at = 0;
  bool started = false;
  while (true) {
    auto made =
        co_await workers.run(std::nullopt, [file, cutter, at]() -> Result<std::pair<size_t, std::string>> {
          std::string piece = TRY(read_piece(*file, at, kPiece));
          return std::pair(piece.size(), cutter->feed(piece));
        });
    if (!made && !started) co_return co_await reply_error(response, ApiError(made.error()));
    if (!made) co_return response.abort();
    auto& [read, text] = *made;
    at += read;
    bool last = read < kPiece || cutter->done();
    if (last && !started) co_return (void) co_await response.send(200, headers, std::move(text));
    if (!started && !co_await response.start(200, headers, std::nullopt)) co_return;
    started = true;
    if (!text.empty() && !co_await response.write(text)) co_return;
    if (last) break;
  }
  co_await response.finish();
}

}  // namespace

io::Task<> FileRoutes::download(http::Request& request, http::ResponseWriter& response) {
  http::Query query(request.head.query());
  std::string path = query.get("path").value_or("");
  if (path.empty()) {
    co_return co_await reply_error(response,
                                   bad_request("the query parameter path is missing", codes::kMissingQuery));
  }
  const http::Headers& fields = request.head.headers;
  const std::string* range_field = fields.find("Range");
  auto lines = parse_line_range(query.get("offset"), query.get("limit"));
  if (!lines) co_return co_await reply_error(response, bad_request(lines.error().message));
  if (*lines && range_field) {
    co_return co_await reply_error(response,
                                   bad_request("offset and limit cannot be combined with a Range header"));
  }
  auto as = identity(request);
  if (!as) co_return co_await reply_error(response, as.error());
  auto opened = co_await workers_.run(*as, [core = &core_, path] { return open_for_reading(*core, path); });
  if (!opened) co_return co_await reply_error(response, opened.error());
  Opened file = *opened;
  if (*lines) co_return co_await send_lines(workers_, file, response, **lines);

  uint64_t size = static_cast<uint64_t>(file->info.st_size);
  http::Headers headers{{"Content-Type", "application/octet-stream"},
                        {"Content-Disposition", disposition(base_name(file->path))},
                        {"Last-Modified", format_http_date(file->info.st_mtim.tv_sec)},
                        {"Accept-Ranges", "bytes"}};
  std::string_view if_range = fields.get("If-Range");
  if (range_field && size > 0 && (if_range.empty() || !changed_since(*file, if_range))) {
    auto range = parse_range(*range_field, size);
    if (!range) co_return co_await reply_error(response, {416, codes::kUnknown, range.error().message});
    if (!*range) {
      response.always("Content-Range", "bytes */" + std::to_string(size));
      std::string why = "the file has " + std::to_string(size) + " bytes; the range asks for none of them";
      co_return co_await reply_error(response, {416, codes::kUnknown, why});
    }
    auto [first, last] = **range;
    headers.set("Content-Range",
                "bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" + std::to_string(size));
    if (!co_await response.start(206, std::move(headers), last - first + 1)) co_return;
    co_return co_await send_bytes(workers_, file, response, first, last + 1);
  }
  std::string_view if_modified = fields.get("If-Modified-Since");
  if (!if_modified.empty() && !changed_since(*file, if_modified)) {
    co_return (void) co_await response.send(304, std::move(headers), "");
  }
  if (size == 0) co_return co_await send_unsized(workers_, file, response, std::move(headers));
  if (!co_await response.start(200, std::move(headers), size)) co_return;
  co_await send_bytes(workers_, file, response, 0, size);
}

}  // namespace osb::execd
