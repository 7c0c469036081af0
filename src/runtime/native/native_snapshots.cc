// Snapshots: the launcher makes and keeps them.

#include <unistd.h>

#include "io/descriptor.h"
#include "runtime/native/changes.h"
#include "runtime/native/native_runtime.h"
#include "runtime/native/native_sandbox.h"

namespace osb::runtime {
namespace {

// For as much as a disk holds: nobody waits for it but the snapshot itself.
constexpr auto kCopyDeadline = std::chrono::hours(1);

constexpr auto kChangesDeadline = std::chrono::minutes(1);
constexpr size_t kMostChangesText = 64 << 20;

Task<Result<void>> read_to_end(io::asio::posix::stream_descriptor& pipe, std::string& text) {
  std::string buffer(64 << 10, '\0');
  while (true) {
    ssize_t n = ::read(pipe.native_handle(), buffer.data(), buffer.size());
    if (n == 0) co_return Result<void>();
    if (n < 0 && errno != EAGAIN && errno != EINTR) co_return fail_errno("read the list of changes");
    if (n < 0) {
      CO_TRY(co_await io::wait_readable(pipe));
      continue;
    }
    text.append(buffer, 0, static_cast<size_t>(n));
    if (text.size() > kMostChangesText) co_return fail(Code::too_large, "the list of changes is too long");
  }
}

KeptSnapshot kept_from(launcher::KeepAnswer answer) {
  KeptSnapshot kept{.image_id = std::move(answer.image),
                    .layers = {},
                    .bytes = answer.bytes,
                    .entries = answer.entries,
                    .record = std::move(answer.record)};
  for (launcher::SnapshotLayer& layer : answer.layers)
    kept.layers.push_back({std::move(layer.overlay), std::move(layer.digest)});
  return kept;
}

}  // namespace

Task<Result<void>> NativeRuntime::capture(std::string handle, std::string snapshot) {
  CO_TRY(co_await launcher_.ask(launcher::CaptureRequest{std::move(handle), std::move(snapshot)},
                                kCopyDeadline));
  co_return Result<void>();
}

Task<Result<KeptSnapshot>> NativeRuntime::keep(std::string snapshot) {
  auto answer = CO_TRY(co_await launcher_.ask(launcher::KeepRequest{{std::move(snapshot)}}, kCopyDeadline));
  co_return kept_from(std::move(answer.body));
}

Task<Result<KeptSnapshot>> NativeRuntime::keep_for_now(std::string snapshot) {
  auto answer = CO_TRY(co_await launcher_.ask(launcher::PlaceRequest{{std::move(snapshot)}}, kCopyDeadline));
  co_return kept_from(std::move(answer.body));
}

Task<Result<void>> NativeRuntime::drop(std::string snapshot) {
  CO_TRY(co_await launcher_.ask(launcher::DropRequest{{std::move(snapshot)}}));
  co_return Result<void>();
}

Task<Result<std::vector<sandbox::FileChange>>> NativeRuntime::changes(std::string handle) {
  auto answer = CO_TRY(co_await launcher_.ask(launcher::DiffRequest{{std::move(handle)}}));
  io::asio::posix::stream_descriptor pipe(executor_);
  CO_TRY(io::assign(pipe, std::move(answer.descriptors[0])));
  std::string text;
  CO_TRY(co_await io::with_deadline(kChangesDeadline, "list changes", read_to_end(pipe, text)));
  co_return parse_changes(text);
}

Task<Result<std::vector<std::string>>> NativeRuntime::list_snapshots() {
  std::vector<std::string> ids;
  if (!capabilities_.snapshots) co_return ids;
  while (true) {
    launcher::SnapshotsRequest request;
    if (!ids.empty()) request.after = ids.back();
    auto page = CO_TRY(co_await launcher_.ask(std::move(request)));
    ids.insert(ids.end(), page.body.ids.begin(), page.body.ids.end());
    if (page.body.ids.size() < launcher::kListPage) co_return ids;
  }
}

}  // namespace osb::runtime
