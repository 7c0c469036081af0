#pragma once

// An escape probe: one forbidden thing, tried for real from inside a sandbox, as its root.
//
// A probe is a function that makes attempts and notes what came of each: `call` for "this must fail", `gate`
// for a call made with arguments that can do no harm, where any answer other than a refusal means that the
// privilege check was passed. The verdict follows from the notes: one success is a breach, whatever else was
// refused.
//
// Probes are written so that a missing protection costs nothing: they undo what worked, write back only
// values they have read, and never aim at a process or file that was not handed to them, PID 1 of their own
// namespace excepted.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace osb::probe {

using Args = std::span<char* const>;

// What one attempt came to. Converts from a system call's return value and takes errno along.
struct Answer {
  long rc;
  int error = 0;
  int signal = 0;  // the attempt ran in a child and this killed it

  Answer(long rc);
  Answer(long rc, int error, int signal) : rc(rc), error(error), signal(signal) {}
  bool worked() const { return rc >= 0; }
};

class Attempts {
 public:
  // Notes the answer of an attempt that must fail. True: it worked, and the caller undoes it.
  bool call(std::string_view function, std::string_view variant, Answer answer);
  // Notes the answer of a call with harmless arguments: only "not you" (EPERM, EACCES) and "not here"
  // (ENOSYS, no such family or protocol), or death by the filter, count as refused. EINVAL, ENOENT and the
  // like mean that nothing but the arguments was wrong.
  bool gate(std::string_view function, std::string_view variant, Answer answer);

  void got(std::string_view what);                                   // a breach
  void stopped(std::string_view by, std::string_view variant = "");  // a refusal that is not an errno
  void skipped(std::string_view why);  // counts only when nothing else was tried

  // Exit status and the one line of explanation.
  int verdict() const;
  std::string explain() const;

 private:
  struct Refusal {
    std::string by;
    std::vector<std::string> variants;
  };
  std::vector<Refusal> refusals_;
  std::vector<std::string> gains_;
  std::string skipped_;
};

struct Probe {
  const char* name;    // also the name of its file
  const char* tries;   // one line for people
  const char* unsafe;  // why it must not run without protection on a machine one cares for, else null
  void (*run)(Attempts&, Args);
};

inline constexpr int kRefused = 0;
inline constexpr int kSucceeded = 10;
inline constexpr int kNotApplicable = 20;

std::span<const Probe* const> all_probes();

}  // namespace osb::probe
