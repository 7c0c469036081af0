#include "sys/code_pages.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace osb::sys {
namespace {

int forget_object(dl_phdr_info* object, size_t, void* page_size) {
  const uintptr_t page = *static_cast<uintptr_t*>(page_size);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    // What is relocated lies in a writable part, also where it is made read-only afterwards.
    if (part.p_type != PT_LOAD || (part.p_flags & PF_W) != 0) continue;
    // Whole pages: those at the edges may be shared with a part that is written.
    uintptr_t begin = (object->dlpi_addr + part.p_vaddr + page - 1) & ~(page - 1);
    uintptr_t end = (object->dlpi_addr + part.p_vaddr + part.p_memsz) & ~(page - 1);
    if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void forget_code_pages() {
  auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  ::dl_iterate_phdr(forget_object, &page);
}

}  // namespace osb::sys
