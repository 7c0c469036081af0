#include "interpreter/contexts.h"

#include <algorithm>

namespace osb::interpreter {

Result<std::shared_ptr<Context>> Contexts::create(std::string_view language, std::string cwd) {
  std::string name = TRY(kernels_.known_name(language));
  if (core_.ended) return fail(Code::wrong_state, "the sandbox has ended");
  if (contexts_.size() >= kMaxContexts) {
    return fail(Code::exhausted,
                "there are " + std::to_string(kMaxContexts) + " code contexts already; delete some");
  }
  auto context = std::make_shared<Context>(core_, name, cwd);
  auto kernel = TRY(kernels_.start(name, cwd.empty() ? core_.cwd : std::move(cwd)));
  context->when_imported([this, name](const auto& modules) { kernels_.imported(name, modules); });
  contexts_.push_back(context);
  context->attach(std::move(kernel));
  return context;
}

Result<std::shared_ptr<Context>> Contexts::default_for(std::string_view language) {
  std::string name = TRY(kernels_.known_name(language));
  auto known = defaults_.find(name);
  if (known != defaults_.end()) {
    auto context = find(known->second);
    if (context && !context->ended()) return context;
    if (context) destroy(context->id());
  }
  auto context = TRY(create(name, ""));
  defaults_[name] = context->id();
  return context;
}

std::shared_ptr<Context> Contexts::find(const std::string& id) const {
  for (const auto& context : contexts_) {
    if (context->id() == id) return context;
  }
  return nullptr;
}

std::vector<std::shared_ptr<Context>> Contexts::list(std::string_view language) const {
  if (language.empty()) return contexts_;
  std::vector<std::shared_ptr<Context>> out;
  auto name = kernels_.known_name(language);
  std::copy_if(contexts_.begin(), contexts_.end(), std::back_inserter(out),
               [&](const auto& context) { return name && context->language() == *name; });
  return out;
}

bool Contexts::destroy(const std::string& id) {
  auto found = std::find_if(contexts_.begin(), contexts_.end(),
                            [&](const auto& context) { return context->id() == id; });
  if (found == contexts_.end()) return false;
  auto context = *found;
  contexts_.erase(found);
  context->destroy();
  return true;
}

}  // namespace osb::interpreter
