#include "server/caller.h"

namespace osb::server {
namespace {

// A pattern's names stand between braces, and a parameter's value never chooses its name.
constexpr const char* kOwner = "{owner}";
constexpr const char* kSandbox = "{sandbox of the endpoint}";
constexpr const char* kPreview = "{preview}";

}  // namespace

using sandbox::Principal;

void set_caller(http::Request& request, Principal who) {
  request.params.insert_or_assign(kOwner, std::move(who.owner));
  if (!who.sandbox.empty()) request.params.insert_or_assign(kSandbox, std::move(who.sandbox));
}

Principal caller_of(const http::Request& request) {
  auto owner = request.params.find(kOwner), sandbox = request.params.find(kSandbox);
  Principal who;
  if (owner != request.params.end()) who.owner = owner->second;
  if (sandbox != request.params.end()) who.sandbox = sandbox->second;
  return who;
}

void set_preview(http::Request& request) { request.params.insert_or_assign(kPreview, ""); }
bool is_preview(const http::Request& request) { return request.params.contains(kPreview); }

}  // namespace osb::server
