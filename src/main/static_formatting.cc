// The bodies of fmt for the static executable: Debian has no static archive of it, but its headers have
// everything.

#include <fmt/format-inl.h>

// What its other templates expect to be compiled once, somewhere.
FMT_BEGIN_NAMESPACE
namespace detail {
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);
}  // namespace detail
FMT_END_NAMESPACE
