#include "execd/commands.h"

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
  size_t finished = 0, bytes = 0, files = 0;
  // From the newest to the oldest, so that what exceeds a limit is what is oldest.
  for (auto it = in_order_.end(); it != in_order_.begin();) {
    --it;
    const Command& command = **it;
    if (command.running()) continue;
    ++finished;
    bytes += command.memory_bytes();
    files += command.log().in_file() ? 1 : 0;
    if (finished <= kMaxFinished && bytes <= kMaxFinishedBytes && files <= kMaxLogFiles &&
        now - *command.finished_at() < kRetention) {
      continue;
    }
    by_id_.erase(command.id());
    it = in_order_.erase(it);
  }
}

}  // namespace osb::execd
