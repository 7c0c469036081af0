// For tests: the host executable with one more runtime, "memory", whose engine is a file beside the database.
// Never installed.

#include <string_view>

#include "cli/cli.h"
#include "testkit/memory_runtime.h"

extern "C" {
extern const char osb_launcher_bytes[], osb_launcher_bytes_end[];
extern const char osb_execd_bytes[], osb_execd_bytes_end[];
extern const char osb_egress_bytes[], osb_egress_bytes_end[];
}

namespace {

using namespace osb;

Result<std::unique_ptr<runtime::Runtime>> make_memory_runtime(const runtime::RuntimeContext& context) {
  auto engine = TRY(testkit::MemoryEngine::open(context.executor, context.directory + "/memory-engine.json"));
  return std::make_unique<testkit::MemoryRuntime>(std::move(engine), "memory", context.owner,
                                                  testkit::answer_inside);
}

}  // namespace

int main(int argc, char** argv) {
  cli::Embedded embedded{.launcher = {osb_launcher_bytes, osb_launcher_bytes_end},
                         .execd = {osb_execd_bytes, osb_execd_bytes_end},
                         .egress = {osb_egress_bytes, osb_egress_bytes_end},
                         .probe = {},
                         .runtimes = {make_memory_runtime}};
  std::string_view name = argc > 0 ? argv[0] : "osb";
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  if (name == "opensandbox-server") return cli::opensandbox_server_main(argc, argv, embedded);
  return cli::osb_main(argc, argv, embedded);
}
