#include "base/error.h"

#include <cstring>

namespace osb {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::invalid_argument:
      return "invalid argument";
    case Code::not_found:
      return "not found";
    case Code::already_exists:
      return "already exists";
    case Code::wrong_state:
      return "wrong state";
    case Code::permission_denied:
      return "permission denied";
    case Code::unauthenticated:
      return "unauthenticated";
    case Code::unsupported:
      return "unsupported";
    case Code::too_large:
      return "too large";
    case Code::exhausted:
      return "exhausted";
    case Code::timeout:
      return "timeout";
    case Code::unavailable:
      return "unavailable";
    case Code::cancelled:
      return "cancelled";
    case Code::corrupt:
      return "corrupt";
    case Code::internal:
      return "internal error";
  }
  return "unknown";
}

Error Error::in(std::string_view what) && {
  std::string grown;
  grown.reserve(what.size() + 2 + message.size());
  grown.append(what).append(": ").append(message);
  message = std::move(grown);
  return std::move(*this);
}

std::unexpected<Error> fail(Code code, std::string message) {
  return std::unexpected(Error{code, 0, std::move(message)});
}

std::string errno_text(int err) {
  const char* text = ::strerrordesc_np(err);
  return text ? std::string(text) : "error " + std::to_string(err);
}

std::unexpected<Error> fail_errno(std::string_view what, int err) {
  return std::unexpected(Error{code_from_errno(err), err, std::string(what) + ": " + errno_text(err)});
}

Code code_from_errno(int err) {
  switch (err) {
    case ENOENT:
    case ESRCH:
    case ENXIO:
      return Code::not_found;
    case EEXIST:
      return Code::already_exists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::permission_denied;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case EXDEV:  // open_beneath: the path leaves its directory
    case ELOOP:
      return Code::invalid_argument;
    case EBUSY:
    case ENOTEMPTY:
    case ETXTBSY:
      return Code::wrong_state;
    case ENOSYS:
    case EOPNOTSUPP:
    case ENODEV:
      return Code::unsupported;
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EAGAIN:
      return Code::exhausted;
    case ETIMEDOUT:
      return Code::timeout;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPIPE:
    case ENOTCONN:
      return Code::unavailable;
    case ECANCELED:
      return Code::cancelled;
    case E2BIG:
    case EFBIG:
    case EMSGSIZE:
      return Code::too_large;
    default:
      return Code::internal;
  }
}

}  // namespace osb
