#pragma once

// The bash side of a session: what the persistent shell executes between the commands of its client.
//
// Descriptors, all private: a command and what it starts find /dev/null in their place. The numbers are those
// of a process that may have that many; where nofile is lower, they are the same five at a lower
// first_descriptor.
//   240  requests: one letter, eight digits of length, that many bytes of bash code
//        R  a command of the client: standard input is /dev/null, output and error go to the session's output
//        C  code of ours
//   241  answers: "S<status>\n" when the shell is ready for the next request (so the first one means:
//   started)
//        "F<pid> <number>\n" when a keeper is ready, "D<length>\n<bash code>" when a keeper was woken
//   242  /dev/null      243  the session's output      244  wakes the keeper
//
// A keeper is a copy of the shell as it is between two commands. It does nothing but wait. When the shell
// goes away ("exit", "exec", a kill after a time limit), the keeper is woken, writes the state it kept as
// code and ends; a fresh shell that executes the code is the session's new shell. The copy is made by a fork
// inside a command substitution, because "&" alone would change "$!" and the list of jobs; "set -m" there
// keeps SIGINT from being ignored and gives it a group of its own; and descriptors of the client's are closed
// in it, or a reader of theirs would never see an end of file.

#include <cstdint>
#include <string>
#include <string_view>

namespace osb::execd::shell {

inline constexpr int kUsualFirst = 240;
enum Descriptor { kRequests, kAnswers, kNull, kOutput, kWake };  // counted from the first

// The number of the first one for a shell that may have so many open files.
int first_descriptor(uint64_t open_files);
// The program of the shell: bash -c MAIN bash
std::string main_program(int first);
// Makes a keeper, which reports itself with this number; code for a C request.
std::string keeper_program(int first, uint64_t number);

std::string frame(char kind, std::string_view code);
// A word that bash reads as exactly these bytes.
std::string quote(std::string_view text);
// Code that enters a directory: $NAME and ${NAME} of `path` are variables of the shell, a leading "~" is its
// HOME, everything else is literal. Its status is not 0 when a variable is unset or the directory cannot be
// entered.
std::string change_directory(std::string_view path);

}  // namespace osb::execd::shell
