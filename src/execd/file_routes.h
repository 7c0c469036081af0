#pragma once

// The file and directory routes, at the root and below /v1/filesystem/{uid}/{gid}, where they act as that
// user.

#include "execd/core.h"
#include "execd/reply.h"
#include "execd/workers.h"
#include "http/router.h"

namespace osb::execd {

class FileRoutes {
 public:
  FileRoutes(Core& core, Workers& workers) : core_(core), workers_(workers) {}
  void add_to(http::Router& router);

 private:
  using Handler = io::Task<> (FileRoutes::*)(http::Request&, http::ResponseWriter&);
  void add(http::Router& router, const char* method, const std::string& path, Handler handler);

  io::Task<> info(http::Request& request, http::ResponseWriter& response);
  io::Task<> remove_files(http::Request& request, http::ResponseWriter& response);
  io::Task<> move(http::Request& request, http::ResponseWriter& response);
  io::Task<> permissions(http::Request& request, http::ResponseWriter& response);
  io::Task<> replace(http::Request& request, http::ResponseWriter& response);
  io::Task<> make(http::Request& request, http::ResponseWriter& response);
  io::Task<> remove_directories(http::Request& request, http::ResponseWriter& response);
  io::Task<> search(http::Request& request, http::ResponseWriter& response);
  io::Task<> list(http::Request& request, http::ResponseWriter& response);
  io::Task<> upload(http::Request& request, http::ResponseWriter& response);
  io::Task<> download(http::Request& request, http::ResponseWriter& response);

  // Whom the request acts as: the ids of its path, else the sandbox's.
  std::expected<std::optional<Credentials>, ApiError> identity(const http::Request& request) const;

  // Runs a job that makes the JSON of the answer ("" for an empty one) and sends it.
  template <class Job>
  io::Task<> answer(http::Request& request, http::ResponseWriter& response, Job job) {
    auto as = identity(request);
    if (!as) co_return co_await reply_error(response, as.error());
    std::expected<std::string, ApiError> made = co_await workers_.run(*as, std::move(job));
    if (!made) co_return co_await reply_error(response, made.error());
    if (made->empty()) co_return co_await reply_empty(response);
    co_await reply_json(response, std::move(*made));
  }

  Core& core_;
  Workers& workers_;
};

}  // namespace osb::execd
