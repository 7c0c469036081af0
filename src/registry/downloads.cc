#include "registry/downloads.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "registry/at_once.h"

namespace osb::registry {
namespace {

// The file of a layer, which nobody else writes now. Whoever else is downloading the same layer is waited
// for.
Result<Fd> open_blob(int directory, const std::string& digest) {
  while (true) {
    Fd file = TRY(open_at(directory, digest, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    while (::flock(file.get(), LOCK_EX) < 0) {
      if (errno != EINTR) return fail_errno("wait for another download of the layer");
    }
    struct stat info{};
    if (::fstat(file.get(), &info) < 0) return fail_errno("look at the file of a layer");
    // It was unpacked and removed while we waited.
    if (info.st_nlink > 0) return file;
  }
}

uint64_t size_of(int file) {
  struct stat info{};
  return ::fstat(file, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

// Who has another source to ask does not wait for one that is away.
constexpr int kAttemptsOfMirrors = 3;

// What a source does wrong, not this host: another one may do better.
bool is_of_the_source(Code code) {
  return code != Code::exhausted && code != Code::internal && code != Code::cancelled;
}

Result<void> download(std::vector<RepositoryClient>& clients, const Resolved::Layer& layer, int directory,
                      const Told& told) {
  Fd file = TRY(open_blob(directory, layer.digest));
  for (size_t i = 0; i < clients.size(); ++i) {
    bool last = i + 1 == clients.size();
    auto attempt = [&]() -> Result<void> {
      if (size_of(file.get()) == layer.size && layer.size != 0) return {};
      return clients[i].download(layer.digest, layer.size, file.get(), told);
    };
    auto done =
        try_again(attempt, [&] { return size_of(file.get()); }, last ? kMostAttempts : kAttemptsOfMirrors);
    if (done) break;
    if (last || !is_of_the_source(done.error().code)) return done;
    // What is not the layer is not gone on with.
    if (done.error().code == Code::corrupt && ::ftruncate(file.get(), 0) < 0)
      return fail_errno("shorten the file of a layer");
  }
  told(layer.size);
  return {};
}

}  // namespace

Result<void> download_layers(std::vector<RepositoryClient>& clients,
                             const std::vector<Resolved::Layer>& layers, int directory,
                             const std::function<void(uint64_t bytes)>& told) {
  std::vector<Job> jobs;
  for (const Resolved::Layer& layer : layers) {
    jobs.push_back({.work = [&clients, &layer, directory](
                                const Told& each) { return download(clients, layer, directory, each); },
                    .size = layer.size});
  }
  return run_at_once(jobs, told);
}

}  // namespace osb::registry
