#pragma once

// What GET /health looks at: a short list of named checks, each of which asks one part of the service whether
// it could do its work now.
//
// The route is open to everybody, so the checks run at most once a second, however often they are asked for.
// Belongs to the server's loop.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "io/task.h"

namespace osb::server {

struct HealthCheck {
  std::string name;
  std::function<io::Task<Result<void>>()> ask;
  std::string remedy;  // a sentence for whoever runs the service
  enum class Weight { vital, partial };
  Weight weight = Weight::vital;  // partial: the service does most of its work without it
};

// A check that failed.
struct Trouble {
  std::string name, cause, remedy;
  HealthCheck::Weight weight = HealthCheck::Weight::vital;
};

class Health {
 public:
  void add(HealthCheck check) { checks_.push_back(std::move(check)); }

  // Empty when all is well.
  io::Task<std::vector<Trouble>> look();

 private:
  std::vector<HealthCheck> checks_;
  std::vector<Trouble> last_;
  std::chrono::steady_clock::time_point next_{};
};

// The body of an answer about them: a list of objects.
std::string to_json(const std::vector<Trouble>& troubles);

}  // namespace osb::server
