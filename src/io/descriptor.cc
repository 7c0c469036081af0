#include "io/descriptor.h"

#include "io/task.h"

namespace osb::io {

Result<void> assign(boost::asio::posix::stream_descriptor& to, Fd fd) {
  if (!fd.valid()) return fail_errno("no descriptor");
  boost::system::error_code error;
  to.assign(fd.get(), error);
  if (error) return std::unexpected(to_error("watch a descriptor", error));
  fd.release();
  return {};
}

}  // namespace osb::io
