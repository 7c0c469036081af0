#pragma once

// The runtimes of one server: built once, in one place (cli/server_role.cc), each by its factory; then found
// by the name that a request or a row has for it.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/runtime.h"

namespace osb::runtime {

// What every runtime is made with.
struct RuntimeContext {
  io::Executor executor;
  std::string owner;      // of everything it makes: the identity of the service's state directory
  std::string directory;  // the server's own, which it may write
};
// One kind of runtime, before it is made.
using RuntimeFactory = std::function<Result<std::unique_ptr<Runtime>>(const RuntimeContext&)>;

// Borrows the runtimes. Belongs to one loop.
class Runtimes {
 public:
  // For requests that name none.
  explicit Runtimes(Runtime& standard);
  Runtimes(const Runtimes&) = delete;
  ~Runtimes();
  // One that is not offered has the sandboxes that it has, and gets no new ones.
  enum class Offered { yes, no };
  void add(Runtime& runtime, Offered offered = Offered::yes);

  Runtime& standard() { return *all_.front(); }
  // For a request: "" is the standard one; null: none of this name is offered.
  Runtime* find(std::string_view name);
  // For what is stored: a sandbox whose runtime this server does not have is one whose engine is away. ""
  // (of rows that say nothing) is the standard one.
  Runtime& of(std::string_view name);
  // Those that rows have asked for in vain come last.
  const std::vector<Runtime*>& all() const { return all_; }
  std::string names() const;  // of those that are offered, for messages

 private:
  Runtime* present(std::string_view name);

  std::vector<Runtime*> all_;
  std::vector<const Runtime*> not_offered_;
  std::vector<std::unique_ptr<Runtime>> absent_;
};

}  // namespace osb::runtime
