// POST /files/upload: multipart/form-data with pairs of parts "metadata" (JSON) and "file". The i-th metadata
// belongs to the i-th file whatever the order; a file whose metadata has come is written to its place as it
// arrives, another waits in an unnamed file. Destinations appear when the whole form was good.

#include <sys/stat.h>

#include "execd/file_routes.h"
#include "execd/incoming_file.h"
#include "execd/paths.h"
#include "execd/piece.h"
#include "execd/spill_buffer.h"
#include "http/multipart.h"

namespace osb::execd {
namespace {

constexpr size_t kMaxMetadata = 64 * 1024;

struct Metadata {
  std::string path;
  Permission permission;
};

std::expected<Metadata, ApiError> parse_metadata(std::string_view text) {
  auto invalid = [](std::string why) {
    return std::unexpected(bad_request(std::move(why), codes::kInvalidFileMetadata));
  };
  auto value = json::parse_first(text);
  if (!value) return invalid("metadata is no JSON: " + value.error().message);
  json::Issues issues;
  json::Field root = json::Field::root(*value, issues, "metadata", json::Reading::exact);
  Metadata metadata{root["path"].string().value_or(""), decode_permission(root)};
  if (!issues.empty()) return invalid(first_issue(issues).message);
  if (metadata.path.empty()) return invalid("metadata.path must not be empty");
  return metadata;
}

// What is wrong with the place that the metadata names is the client's to put right; a disk that is full or
// broken is not. 400 for all of it: published clients read no other status of this route.
ApiError upload_error(const Error& error) {
  switch (error.code) {
    case Code::invalid_argument:
    case Code::not_found:
    case Code::permission_denied:
    case Code::already_exists:
    case Code::wrong_state:
    case Code::unsupported:
    case Code::too_large:
      return bad_request(error.message, codes::kInvalidFileMetadata);
    default:
      return {500, codes::kRuntimeError, error.message};
  }
}

class Upload {
 public:
  Upload(const Core& core, Workers& workers, std::optional<Credentials> as)
      : core_(core), workers_(workers), as_(std::move(as)) {}

  io::Task<std::expected<void, ApiError>> receive(http::MultipartReader& form);

 private:
  using Outcome = std::expected<void, ApiError>;
  using Incoming = std::shared_ptr<IncomingFile>;  // shared with the jobs that write it
  struct Received {
    Incoming file;                         // its metadata was there first
    std::shared_ptr<SpillBuffer> waiting;  // it was not
  };

  io::Task<Outcome> read_metadata(http::MultipartReader& form);
  io::Task<Outcome> read_file(http::MultipartReader& form);
  io::Task<std::expected<Incoming, ApiError>> open(const Metadata& metadata);
  io::Task<Outcome> write_waiting(Received& received, const Metadata& metadata);
  io::Task<Outcome> commit_all();
  // Fills the buffer; fewer bytes only at the end of the part.
  io::Task<Result<Piece>> read_piece(http::MultipartReader& form, Piece piece = {});

  const Core& core_;
  Workers& workers_;
  std::optional<Credentials> as_;
  std::vector<Metadata> metadata_;
  std::vector<Received> files_;
};

io::Task<Result<Piece>> Upload::read_piece(http::MultipartReader& form, Piece piece) {
  piece.size = 0;
  while (piece.size < Piece::kCapacity) {
    auto got = co_await form.read_some({piece.data.get() + piece.size, Piece::kCapacity - piece.size});
    if (!got) co_return std::unexpected(got.error());
    piece.size += *got;
    if (*got == 0) break;
  }
  co_return piece;
}

io::Task<Upload::Outcome> Upload::read_metadata(http::MultipartReader& form) {
  auto text = co_await read_piece(form);
  if (!text) co_return std::unexpected(bad_request(text.error().message, codes::kInvalidFile));
  if (text->size > kMaxMetadata)
    co_return std::unexpected(bad_request("metadata is too long", codes::kInvalidFileMetadata));
  auto metadata = parse_metadata(text->view());
  if (!metadata) co_return std::unexpected(metadata.error());
  metadata_.push_back(std::move(*metadata));
  co_return Outcome{};
}

io::Task<std::expected<Upload::Incoming, ApiError>> Upload::open(const Metadata& metadata) {
  co_return co_await workers_.run(
      as_, [core = &core_, path = metadata.path]() -> std::expected<Incoming, ApiError> {
        auto resolved = resolve_path(path, core->env, core->cwd);
        if (!resolved) return std::unexpected(upload_error(resolved.error()));
        auto file = IncomingFile::create(*resolved);
        if (!file) return std::unexpected(upload_error(file.error()));
        return std::make_shared<IncomingFile>(std::move(*file));
      });
}

io::Task<Upload::Outcome> Upload::read_file(http::MultipartReader& form) {
  Received received;
  if (metadata_.size() > files_.size()) {
    auto file = co_await open(metadata_[files_.size()]);
    if (!file) co_return std::unexpected(file.error());
    received.file = std::move(*file);
  } else {
    received.waiting = std::make_shared<SpillBuffer>(Piece::kCapacity);
  }
  // One piece is written while the next one arrives; written pieces come back to be filled again.
  auto write = [file = received.file, waiting = received.waiting](Piece full) {
    return [file, waiting, full = std::move(full)]() mutable -> Result<Piece> {
      TRY(file ? file->write(full.view()) : waiting->append(full.view()));
      return std::move(full);
    };
  };
  using Write = decltype(write(Piece()));
  std::optional<Workers::Begun<Write, Result<Piece>>> writing;
  Piece spare;
  while (true) {
    auto piece = co_await read_piece(form, std::move(spare));
    if (!piece) co_return std::unexpected(bad_request(piece.error().message, codes::kInvalidFile));
    if (writing) {
      auto written = co_await writing->wait();
      if (!written) co_return std::unexpected(upload_error(written.error()));
      spare = std::move(*written);
    } else {
      spare = Piece();
    }
    if (piece->size == 0) break;
    writing.emplace(workers_.begin(as_, write(std::move(*piece))));
  }
  files_.push_back(std::move(received));
  co_return Outcome{};
}

io::Task<Upload::Outcome> Upload::write_waiting(Received& received, const Metadata& metadata) {
  auto file = co_await open(metadata);
  if (!file) co_return std::unexpected(file.error());
  received.file = std::move(*file);
  auto copied =
      co_await workers_.run(as_, [file = received.file, waiting = received.waiting]() -> Result<void> {
        for (std::string piece; !waiting->empty();) {
          TRY(waiting->take(piece));
          TRY(file->write(piece));
        }
        return {};
      });
  if (!copied) co_return std::unexpected(upload_error(copied.error()));
  co_return Outcome{};
}

io::Task<Upload::Outcome> Upload::commit_all() {
  for (size_t i = 0; i < files_.size(); ++i) {
    if (!files_[i].waiting) continue;
    auto written = co_await write_waiting(files_[i], metadata_[i]);
    if (!written) co_return written;
  }
  auto committed = co_await workers_.run(as_, [files = files_, metadata = metadata_]() -> Result<void> {
    for (size_t i = 0; i < files.size(); ++i) TRY(files[i].file->commit(metadata[i].permission));
    return {};
  });
  if (!committed) co_return std::unexpected(upload_error(committed.error()));
  co_return Outcome{};
}

io::Task<std::expected<void, ApiError>> Upload::receive(http::MultipartReader& form) {
  while (true) {
    auto part = co_await form.next();
    if (!part) co_return std::unexpected(bad_request(part.error().message, codes::kInvalidFile));
    if (!*part) break;
    Outcome read;
    if ((*part)->name == "metadata") read = co_await read_metadata(form);
    if ((*part)->name == "file") read = co_await read_file(form);
    if (!read) co_return read;
  }
  if (metadata_.empty())
    co_return std::unexpected(bad_request("the part metadata is missing", codes::kInvalidFileMetadata));
  if (files_.empty())
    co_return std::unexpected(bad_request("the part file is missing", codes::kInvalidFileContent));
  if (metadata_.size() != files_.size()) {
    co_return std::unexpected(bad_request("there are " + std::to_string(metadata_.size()) +
                                              " metadata parts and " + std::to_string(files_.size()) +
                                              " file parts; each file needs its metadata",
                                          codes::kInvalidFile));
  }
  co_return co_await commit_all();
}

}  // namespace

io::Task<> FileRoutes::upload(http::Request& request, http::ResponseWriter& response) {
  auto as = identity(request);
  if (!as) co_return co_await reply_error(response, as.error());
  auto boundary = http::MultipartReader::boundary_of(request.head.headers.get("Content-Type"));
  if (!boundary)
    co_return co_await reply_error(response, bad_request(boundary.error().message, codes::kInvalidFile));
  http::MultipartReader form(*request.body, std::move(*boundary));
  Upload upload(core_, workers_, std::move(*as));
  auto received = co_await upload.receive(form);
  if (!received) co_return co_await reply_error(response, received.error());
  co_await reply_empty(response);
}

}  // namespace osb::execd
