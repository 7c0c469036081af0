#include "sandbox/create_request.h"

#include "base/idle_entry.h"
#include "base/shell_words.h"

namespace osb::sandbox {

std::vector<std::string> idle_entrypoint() { return idle_entry(); }

bool is_command_line(const std::vector<std::string>& entrypoint) {
  return entrypoint.size() == 1 && entrypoint.front().find_first_of(" \t\n") != std::string::npos;
}

std::vector<std::string> words_of(std::vector<std::string> entrypoint) {
  if (!is_command_line(entrypoint)) return entrypoint;
  return shell_words(entrypoint.front()).value_or(entrypoint);
}

Sandbox new_sandbox(std::string id, const Principal& owner, const CreateRequest& request, WallTime now) {
  Sandbox sandbox{.id = std::move(id), .owner = owner.owner};
  sandbox.status = status_while(State::pending, now);
  sandbox.image = request.image;
  sandbox.entrypoint = request.entrypoint;
  if (request.metadata) sandbox.metadata = *request.metadata;
  sandbox.limits = request.limits_text;
  for (const auto& [name, value] : request.env) sandbox.env_names.push_back(name);
  sandbox.extensions = request.extensions;
  sandbox.platform = request.platform;
  sandbox.created = now;
  if (request.timeout) sandbox.expires = now + *request.timeout;
  return sandbox;
}

}  // namespace osb::sandbox
