#include "registry/uploader.h"

#include <algorithm>
#include <optional>

#include "base/hex.h"
#include "base/sha256.h"
#include "base/strings.h"

namespace osb::registry {
namespace {

// What is lost at most when a connection breaks; some registries want at least 5 MB in all but the last.
constexpr uint64_t kPiece = 32 << 20;

std::string sha(const std::string& digest) { return "sha256:" + digest; }

// "0-1023", how much has arrived. Some say it with "bytes=".
std::optional<uint64_t> arrived_of(std::string_view range) {
  if (range.starts_with("bytes=")) range.remove_prefix(6);
  if (!range.starts_with("0-")) return std::nullopt;
  auto last = parse_number<uint64_t>(range.substr(2));
  if (!last || *last == UINT64_MAX) return std::nullopt;
  // Nothing at all is written 0-0, as one byte is; whoever has one byte has nothing to lose.
  return *last == 0 ? 0 : *last + 1;
}

// Where an answer says that the upload goes on. What began with TLS goes on with it.
Result<Url> next_place(const Url& here, const Answer& answer) {
  Url next = TRY(
      in_context(here.origin() + " names a place for an upload", resolve(here, answer.field("Location"))));
  if (here.tls && !next.tls)
    return fail(Code::permission_denied,
                here.origin() + " wants an upload sent to plain HTTP at " + next.authority());
  return next;
}

// Whether the registry has forgotten an upload: beginning again may help.
bool is_lost(int status) { return status == 404 || status == 416 || status == 400; }

}  // namespace

Result<bool> Uploader::has(const Blob& blob) {
  Answer answer = TRY(client_.ask("HEAD", "/blobs/" + sha(blob.digest), {}));
  if (answer.status() == 404) return false;
  if (answer.status() != 200) return failure_of(answer, client_.repository() + "/blobs/" + sha(blob.digest));
  auto size = parse_number<uint64_t>(answer.field("Content-Length"));
  return !size || *size == blob.size;
}

Result<bool> Uploader::mount(const Blob& blob, const std::string& from) {
  Answer answer = TRY(client_.ask(
      "POST", "/blobs/uploads/?mount=" + percent_encode(sha(blob.digest)) + "&from=" + percent_encode(from),
      {}));
  if (answer.status() == 201) return true;
  // It begins an upload instead, which nobody goes on with.
  if (answer.status() == 202) {
    if (auto url = resolve(client_.base(), answer.field("Location"))) give_up(*url);
  }
  return false;
}

// Best effort: registries forget what nobody goes on with.
void Uploader::give_up(const Url& upload) { (void)client_.ask_at("DELETE", upload, {}); }

Result<void> Uploader::probe() {
  give_up(TRY(begin()).url);
  return {};
}

Result<Uploader::Session> Uploader::begin() {
  Answer answer = TRY(client_.ask("POST", "/blobs/uploads/", {}));
  if (answer.status() != 202) return failure_of(answer, "an upload to " + client_.repository());
  return Session{.url = TRY(next_place(client_.base(), answer))};
}

Result<void> Uploader::look_again(Session& session, uint64_t size) {
  Answer answer = TRY(client_.ask_at("GET", session.url, {}));
  auto arrived = arrived_of(answer.field("Range"));
  if (answer.status() != 204 || !arrived || *arrived > size)
    return fail(Code::wrong_state, "the registry has forgotten the upload");
  if (!answer.field("Location").empty()) session.url = TRY(next_place(session.url, answer));
  session.arrived = *arrived;
  session.doubtful = false;
  return {};
}

Result<void> Uploader::send_piece(Session& session, const Blob& blob, int file, const Told& told) {
  uint64_t start = session.arrived, count = std::min(kPiece, blob.size - start);
  http::Headers headers;
  headers.add("Content-Type", "application/octet-stream");
  headers.add("Content-Range", std::to_string(start) + "-" + std::to_string(start + count - 1));
  session.doubtful = true;
  Answer answer = TRY(client_.ask_at(
      "PATCH", session.url, headers,
      {.file = file, .offset = start, .size = count, .told = [&](uint64_t bytes) { told(start + bytes); }}));
  if (is_lost(answer.status())) return fail(Code::wrong_state, "the registry has forgotten the upload");
  if (answer.status() != 202 && answer.status() != 204 && answer.status() != 201)
    return failure_of(answer, "a piece of a layer");
  session.url = TRY(next_place(session.url, answer));
  session.arrived = start + count;
  session.doubtful = false;
  return {};
}

Result<void> Uploader::finish(const Session& session, const std::string& digest, const Body& body) {
  Url url = session.url;
  url.target +=
      (url.target.find('?') == url.target.npos ? "?digest=" : "&digest=") + percent_encode(sha(digest));
  http::Headers headers;
  headers.add("Content-Type", "application/octet-stream");
  Answer answer = TRY(client_.ask_at("PUT", url, headers, body));
  if (answer.status() == 201 || answer.status() == 204) return {};
  if (answer.status() == 404) return fail(Code::wrong_state, "the registry has forgotten the upload");
  return failure_of(answer, "the end of a layer");
}

Result<void> Uploader::upload(const Blob& blob, int file, const Told& told) {
  std::optional<Session> session;
  uint64_t best = 0;
  bool begun_again = false;
  auto attempt = [&]() -> Result<void> {
    if (!session) session = TRY(begin());
    if (session->doubtful) TRY(look_again(*session, blob.size));
    while (session->arrived < blob.size) {
      TRY(send_piece(*session, blob, file, told));
      best = std::max(best, session->arrived);
    }
    return finish(*session, blob.digest, {});
  };
  auto careful = [&]() -> Result<void> {
    auto done = attempt();
    if (done || done.error().code != Code::wrong_state) return done;
    session.reset();
    // Perhaps only the word was lost that it is there.
    if (TRY(has(blob))) return {};
    if (std::exchange(begun_again, true)) return fail(Code::unavailable, done.error().message);
    return attempt();
  };
  TRY(try_again(careful, [&] { return best; }));
  told(blob.size);
  return {};
}

Result<void> Uploader::upload(const std::string& text) {
  std::string digest = to_hex(sha256_digest(text));
  if (TRY(has({digest, text.size()}))) return {};
  return finish(TRY(begin()), digest, {.text = text});
}

Result<void> Uploader::put_manifest(const std::string& tag, const std::string& media_type,
                                    const std::string& text) {
  http::Headers headers;
  headers.add("Content-Type", media_type);
  Answer answer = TRY(client_.ask("PUT", "/manifests/" + tag, headers, {.text = text}));
  if (answer.status() != 201 && answer.status() != 200 && answer.status() != 202)
    return failure_of(answer, client_.repository() + "/manifests/" + tag);
  auto digest = answer.field("Docker-Content-Digest");
  if (!digest.empty() && digest != sha(to_hex(sha256_digest(text))))
    return fail(Code::corrupt, client_.base().origin() + " keeps another manifest than it was given");
  return {};
}

}  // namespace osb::registry
