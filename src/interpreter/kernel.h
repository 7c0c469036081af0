#pragma once

// Whatever executes the cells of one context: a process of ours, or a kernel of a notebook server.
//
// Belongs to one loop. Everything it has to say goes to its listener, never from inside a call of its own
// methods, except for listen().

#include <memory>
#include <string>
#include <string_view>

#include "execd/events.h"
#include "interpreter/kernel_message.h"

namespace osb::interpreter {

using execd::events::Stream;

class KernelListener {
 public:
  virtual ~KernelListener() = default;
  virtual void on_ready() = 0;
  virtual void on_output(Stream stream, std::string_view bytes) = 0;
  virtual void on_message(const KernelMessage& message) = 0;  // result, display, error, done, modules
  virtual void on_end(const std::string& reason) = 0;         // once; nothing follows
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Of a kernel that is ready or has ended already, the listener hears at once.
  virtual void listen(std::weak_ptr<KernelListener> listener) = 0;
  // Precondition: ready, and the previous cell is done.
  virtual void run(std::string_view id, std::string_view code) = 0;
  virtual void interrupt() = 0;
  // Ends it and everything in its process group. The listener hears nothing any more.
  virtual void destroy() = 0;
};

}  // namespace osb::interpreter
