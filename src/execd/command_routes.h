#pragma once

// POST/DELETE /command, GET /command/status/{id}, GET /command/{id}/logs.

#include "execd/commands.h"
#include "execd/reply.h"
#include "http/router.h"

namespace osb::execd {

// What a request for one more gets when Commands is full().
ApiError too_many_commands();

class CommandRoutes {
 public:
  CommandRoutes(Core& core, Commands& commands) : core_(core), commands_(commands) {}
  void add_to(http::Router& router);

  // Interrupts what `id` names: a command here, whatever else knows the id through `others`. False when
  // nobody does.
  using Interrupt = std::function<io::Task<bool>(std::string id)>;
  void also_interrupt(Interrupt other) { others_.push_back(std::move(other)); }

 private:
  io::Task<> run(http::Request& request, http::ResponseWriter& response);
  io::Task<> interrupt(http::Request& request, http::ResponseWriter& response);
  io::Task<> status(http::Request& request, http::ResponseWriter& response);
  io::Task<> logs(http::Request& request, http::ResponseWriter& response);

  Core& core_;
  Commands& commands_;
  std::vector<Interrupt> others_;
};

}  // namespace osb::execd
