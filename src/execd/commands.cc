#include "execd/commands.h"

#include <algorithm>

#include "execd/retention.h"

namespace osb::execd {

std::shared_ptr<Command> Commands::start(CommandSpec spec) {
  constexpr size_t kStartsPerSweep = 64;
  if (++starts_ % kStartsPerSweep == 0) sweep(wall_now());
  auto command = Command::start(core_, std::move(spec));
  if (command->started() || command->mode() == Mode::background) {
    by_id_.emplace(command->id(), command);
    in_order_.push_back(command);
  }
  return command;
}

std::shared_ptr<Command> Commands::find(std::string_view id) const {
  auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

void Commands::sweep(WallTime now) {
  Retention retention;
  for (auto it = in_order_.end(); it != in_order_.begin();) {
    --it;
    const Command& command = **it;
    if (command.running()) continue;
    if (retention.keeps({.age = now - *command.finished_at(),
                         .memory_bytes = command.memory_bytes(),
                         .log_file_bytes = command.log().in_file() ? command.log().kept_bytes() : 0})) {
      continue;
    }
    by_id_.erase(command.id());
    it = in_order_.erase(it);
  }
}

size_t Commands::running() const {
  return static_cast<size_t>(std::count_if(in_order_.begin(), in_order_.end(),
                                           [](const auto& command) { return command->running(); }));
}

}  // namespace osb::execd
