#pragma once

// Routes as patterns: "/sandboxes/{id}/endpoints/{port}", "/sandboxes/{id}/proxy/{port}{rest...}" (rest is
// empty or starts with a slash). Literal segments win over parameters, earlier routes over later ones.
// Immutable once serving.

#include <string>
#include <vector>

#include "http/server.h"

namespace osb::http {

class Router {
 public:
  // `method` "*" matches every method.
  void add(std::string method, std::string pattern, Handler handler);

  struct Match {
    const Handler* handler = nullptr;  // null when nothing matched
    std::map<std::string, std::string> params;
    std::string rest;
    std::vector<std::string> allowed;  // methods of the routes whose path matched, when the method did not
  };
  Match find(std::string_view method, std::string_view raw_path) const;

 private:
  struct Route;
  using Routes = std::vector<std::shared_ptr<const Route>>;
  std::vector<Routes> by_count_;  // those without a rest, by the number of their segments
  Routes open_ended_;             // those with one
};

}  // namespace osb::http
