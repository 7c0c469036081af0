#include "cli/block_on.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>

namespace osb::cli {

int block_on(io::Task<int> task) {
  io::asio::io_context loop(1);
  int status = 0;
  io::asio::co_spawn(loop, std::move(task), [&status](const std::exception_ptr& thrown, int result) {
    if (thrown) std::rethrow_exception(thrown);  // a bug: nothing of ours throws
    status = result;
  });
  loop.run();
  return status;
}

}  // namespace osb::cli
