#pragma once

// libarchive and libcrypto, loaded when an image is imported and not before: with all that they need they
// would double the time that the service takes to start and the memory that it holds, and a service that
// imports nothing calls neither.
//
// A worker has no file system to load from: load before it is confined.

#include <archive.h>
#include <archive_entry.h>
#include <openssl/evp.h>

#include "base/error.h"

namespace osb::image {

#define OSB_ARCHIVE_FUNCTIONS(X)             \
  X(archive_error_string)                    \
  X(archive_errno)                           \
  X(archive_filter_bytes)                    \
  X(archive_read_new)                        \
  X(archive_read_free)                       \
  X(archive_read_open)                       \
  X(archive_read_open2)                      \
  X(archive_read_support_filter_gzip)        \
  X(archive_read_support_filter_xz)          \
  X(archive_read_support_filter_zstd)        \
  X(archive_read_support_format_empty)       \
  X(archive_read_support_format_raw)         \
  X(archive_read_support_format_tar)         \
  X(archive_read_next_header)                \
  X(archive_read_data_block)                 \
  X(archive_write_new)                       \
  X(archive_write_free)                      \
  X(archive_write_close)                     \
  X(archive_write_set_format_pax_restricted) \
  X(archive_write_set_format_raw)            \
  X(archive_write_add_filter_gzip)           \
  X(archive_write_set_filter_option)         \
  X(archive_write_set_bytes_in_last_block)   \
  X(archive_write_set_bytes_per_block)       \
  X(archive_write_open_fd)                   \
  X(archive_write_open)                      \
  X(archive_write_header)                    \
  X(archive_write_data)                      \
  X(archive_entry_new)                       \
  X(archive_entry_clear)                     \
  X(archive_entry_free)                      \
  X(archive_entry_copy_stat)                 \
  X(archive_entry_set_size)                  \
  X(archive_entry_set_pathname)              \
  X(archive_entry_set_filetype)              \
  X(archive_entry_set_perm)                  \
  X(archive_entry_set_uid)                   \
  X(archive_entry_set_gid)                   \
  X(archive_entry_set_mtime)                 \
  X(archive_entry_set_hardlink)              \
  X(archive_entry_set_symlink)               \
  X(archive_entry_xattr_add_entry)           \
  X(archive_entry_xattr_reset)               \
  X(archive_entry_xattr_next)                \
  X(archive_entry_pathname)                  \
  X(archive_entry_hardlink)                  \
  X(archive_entry_symlink)                   \
  X(archive_entry_filetype)                  \
  X(archive_entry_perm)                      \
  X(archive_entry_uid)                       \
  X(archive_entry_gid)                       \
  X(archive_entry_size)                      \
  X(archive_entry_mtime)                     \
  X(archive_entry_mtime_nsec)

#define OSB_CRYPTO_FUNCTIONS(X) \
  X(EVP_MD_CTX_new)             \
  X(EVP_MD_CTX_free)            \
  X(EVP_DigestInit_ex)          \
  X(EVP_DigestUpdate)           \
  X(EVP_DigestFinal_ex)         \
  X(EVP_sha256)

struct Libraries {
#define OSB_MEMBER(name) decltype(&::name) name = nullptr;
  OSB_ARCHIVE_FUNCTIONS(OSB_MEMBER)
  OSB_CRYPTO_FUNCTIONS(OSB_MEMBER)
#undef OSB_MEMBER
};

// Code::unsupported, naming the package, when one is not installed. Call it before libraries().
Result<void> load_libraries();
// The loaded ones; aborts when nothing was loaded.
const Libraries& libraries();

}  // namespace osb::image
