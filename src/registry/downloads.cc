#include "registry/downloads.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

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

Result<void> download(RepositoryClient& client, const Resolved::Layer& layer, int directory,
                      const Told& told) {
  Fd file = TRY(open_blob(directory, layer.digest));
  auto attempt = [&]() -> Result<void> {
    if (size_of(file.get()) == layer.size && layer.size != 0) return {};
    return client.download(layer.digest, layer.size, file.get(), told);
  };
  TRY(try_again(attempt, [&] { return size_of(file.get()); }));
  told(layer.size);
  return {};
}

}  // namespace

Result<void> download_layers(RepositoryClient& client, const std::vector<Resolved::Layer>& layers,
                             int directory, const std::function<void(uint64_t bytes)>& told) {
  std::vector<Job> jobs;
  for (const Resolved::Layer& layer : layers) {
    jobs.push_back({.work = [&client, &layer, directory](
                                const Told& each) { return download(client, layer, directory, each); },
                    .size = layer.size});
  }
  return run_at_once(jobs, told);
}

}  // namespace osb::registry
