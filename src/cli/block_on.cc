#include "cli/block_on.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <utility>

namespace osb::cli {
namespace {

thread_local io::TaskGroup* current = nullptr;

io::Task<int> run(io::Task<int> task, io::TaskGroup& others) {
  int status = co_await std::move(task);
  co_await others.close();
  co_return status;
}

}  // namespace

int block_on(io::Task<int> task) {
  io::asio::io_context loop(1);
  io::TaskGroup others(loop.get_executor());
  io::TaskGroup* before = std::exchange(current, &others);
  int status = 0;
  io::asio::co_spawn(loop, run(std::move(task), others),
                     [&status](const std::exception_ptr& thrown, int result) {
                       if (thrown) std::rethrow_exception(thrown);  // a bug: nothing of ours throws
                       status = result;
                     });
  loop.run();
  current = before;
  return status;
}

io::TaskGroup& tasks_of_loop() { return *current; }

}  // namespace osb::cli
