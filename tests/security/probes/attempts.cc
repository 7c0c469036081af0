#include <errno.h>
#include <string.h>

#include <algorithm>

#include "probe.h"

namespace osb::probe {
namespace {

constexpr size_t kVariantsShown = 5;

std::string reason(std::string_view function, const Answer& answer) {
  std::string by;
  if (answer.signal != 0) {
    by = std::string("SIG") + (::sigabbrev_np(answer.signal) ? ::sigabbrev_np(answer.signal) : "?");
  } else {
    const char* name = ::strerrorname_np(answer.error);
    by = name ? name : "errno " + std::to_string(answer.error);
  }
  return by.append(" from ").append(function);
}

std::string named(std::string_view function, std::string_view variant) {
  std::string text(function);
  if (!variant.empty()) text.append(" ").append(variant);
  return text;
}

}  // namespace

Answer::Answer(long rc) : rc(rc), error(rc < 0 ? errno : 0) {}

bool Attempts::call(std::string_view function, std::string_view variant, Answer answer) {
  if (answer.worked()) {
    got(named(function, variant) + " worked");
    return true;
  }
  stopped(reason(function, answer), variant);
  return false;
}

bool Attempts::gate(std::string_view function, std::string_view variant, Answer answer) {
  constexpr int kRefusals[] = {EPERM, EACCES, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT};
  const bool refused =
      answer.signal != 0 || std::ranges::find(kRefusals, answer.error) != std::end(kRefusals);
  if (refused || answer.worked()) return call(function, variant, answer);
  got(named(function, variant) + " passed the privilege check (" + reason("the arguments", answer) + ")");
  return true;
}

void Attempts::got(std::string_view what) {
  if (std::ranges::find(gains_, what) == gains_.end()) gains_.emplace_back(what);
}

void Attempts::stopped(std::string_view by, std::string_view variant) {
  auto known = std::ranges::find(refusals_, by, &Refusal::by);
  if (known == refusals_.end()) known = refusals_.insert(refusals_.end(), Refusal{std::string(by), {}});
  if (!variant.empty() && std::ranges::find(known->variants, variant) == known->variants.end())
    known->variants.emplace_back(variant);
}

void Attempts::skipped(std::string_view why) { skipped_ = why; }

int Attempts::verdict() const {
  if (!gains_.empty()) return kSucceeded;
  return refusals_.empty() ? kNotApplicable : kRefused;
}

std::string Attempts::explain() const {
  std::string line;
  auto next = [&line](std::string_view separator) { line.append(line.empty() ? "" : separator); };
  if (!gains_.empty()) {
    for (size_t i = 0; i < std::min(gains_.size(), kVariantsShown); ++i) next("; "), line += gains_[i];
    if (gains_.size() > kVariantsShown)
      line += "; and " + std::to_string(gains_.size() - kVariantsShown) + " more";
  } else if (!refusals_.empty()) {
    for (const Refusal& refusal : refusals_) {
      next("; "), line += refusal.by;
      const size_t shown = std::min(refusal.variants.size(), kVariantsShown);
      for (size_t i = 0; i < shown; ++i) line.append(i ? ", " : ": ").append(refusal.variants[i]);
      if (refusal.variants.size() > shown)
        line += " and " + std::to_string(refusal.variants.size() - shown) + " more";
    }
  } else {
    line = skipped_.empty() ? "nothing to try here" : skipped_;
  }
  std::ranges::replace(line, '\n', ' ');
  return line;
}

}  // namespace osb::probe
