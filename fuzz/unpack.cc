// Whatever a tar archive says, unpacking it touches nothing but its own directory and stays within its
// limits; the same bytes in other pieces give the same verdict; and looking at them as an image archive ends
// with an answer. Checksums of headers are put right first, else hardly any input would get past them. The
// first byte has options.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "check.h"
#include "image/inspect.h"
#include "image/layout.h"
#include "image/libraries.h"
#include "image/test_tar.h"
#include "image/unpack.h"
#include "sys/directory.h"
#include "sys/remove_tree.h"

using namespace osb;

namespace {

constexpr uint64_t kMaxBytes = 1 << 16, kMaxEntries = 64;

void fix_checksums(std::string& tar) {
  for (size_t at = 0; at + 512 <= tar.size();) {
    char* header = tar.data() + at;
    std::memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(header[i]);
    std::snprintf(header + 148, 7, "%06o", sum & 0777777);
    uint64_t size = 0;
    for (size_t i = 124; i < 135 && header[i] >= '0' && header[i] <= '7'; ++i) {
      size = size * 8 + static_cast<uint64_t>(header[i] - '0');
    }
    at += 512 + std::min<uint64_t>((size + 511) / 512 * 512, tar.size());
  }
}

// The directory that everything happens in: "root" for the archive, "outside" to be left alone.
struct Ground {
  std::string path;
  Fd dir;

  Ground() {
    ::umask(0);
    char name[] = "/dev/shm/osb-fuzz-XXXXXX";
    CHECK(::mkdtemp(name));
    path = name;
    dir = Fd(::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    CHECK(write_file_at(dir.get(), "outside", "untouched", O_CREAT, 0666));
    CHECK(image::load_libraries());
  }
  ~Ground() {
    reset();
    ::unlinkat(dir.get(), "outside", 0);
    ::rmdir(path.c_str());
  }
  void reset() {
    while (true) {
      auto names = sys::names_in(dir.get());
      CHECK(names);
      if (names->size() == 1) return;
      for (const std::string& name : *names) {
        if (name == "outside") continue;
        // As an ordinary user, directories may be closed to us.
        (void)::fchmodat(dir.get(), name.c_str(), 0700, 0);
        CHECK(sys::remove_from_trash(dir.get(), name));
      }
    }
  }
  void check_outside() const {
    auto names = sys::names_in(dir.get());
    CHECK(names && names->size() == 2);
    Fd file(::openat(dir.get(), "outside", O_RDONLY | O_CLOEXEC));
    struct stat info{};
    CHECK(::fstat(file.get(), &info) == 0 && (info.st_mode & 07777) == 0666 && info.st_nlink == 1);
    CHECK(read_all(file.get()).value_or("") == "untouched");
  }
};

Result<image::UnpackReport> unpack(const Ground& ground, const std::string& tar, size_t piece,
                                   bool whiteouts) {
  CHECK(::mkdirat(ground.dir.get(), "root", 0700) == 0);
  Fd root(::openat(ground.dir.get(), "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  image::UnpackOptions options;
  options.max_bytes = kMaxBytes;
  options.max_entries = kMaxEntries;
  options.whiteouts = whiteouts;
  options.owners = image::TreeWriter::Owners::ignore;
  image::MemorySource source(tar, piece);
  return image::unpack(source, root.get(), options);
}

void look_at(const std::string& tar) {
  Fd file(::memfd_create("archive", MFD_CLOEXEC));
  CHECK(write_all(file.get(), tar));
  auto report = image::inspect_bytes({.fd = file.get(), .offset = 0, .size = tar.size()});
  CHECK(report);
  auto found = image::parse_inspection(*report);
  CHECK(found);
  auto files = image::ArchiveFiles::of_archive(std::move(file), std::move(found->members));
  CHECK(files);
  if (found->kind == image::Inspection::Kind::image) (void)image::read_layout(*files);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  static Ground ground;
  if (size < 1) return 0;
  std::string tar(fuzz::text_of(data + 1, size - 1));
  if (!(data[0] & 1)) fix_checksums(tar);
  bool whiteouts = data[0] & 2;
  auto done = unpack(ground, tar, tar.size() + 1, whiteouts);
  ground.check_outside();
  if (done) CHECK(done->bytes <= kMaxBytes && done->entries <= kMaxEntries);
  ground.reset();
  auto again = unpack(ground, tar, 1 + data[0] * 3u, whiteouts);
  ground.check_outside();
  CHECK(done.has_value() == again.has_value());
  if (done) CHECK(done->bytes == again->bytes && done->opaque == again->opaque);
  ground.reset();
  look_at(tar);
  return 0;
}
