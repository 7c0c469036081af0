#pragma once

// The namespaces that a sandbox may not make.

#include <sched.h>

#include <cstdint>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

namespace osb::probe {

struct NamespaceFlag {
  const char* name;
  uint64_t flag;
};

inline constexpr NamespaceFlag kNamespaceFlags[] = {
    {"CLONE_NEWUSER", CLONE_NEWUSER},
    {"CLONE_NEWNS", CLONE_NEWNS},
    {"CLONE_NEWPID", CLONE_NEWPID},
    {"CLONE_NEWNET", CLONE_NEWNET},
    {"CLONE_NEWIPC", CLONE_NEWIPC},
    {"CLONE_NEWUTS", CLONE_NEWUTS},
    {"CLONE_NEWCGROUP", CLONE_NEWCGROUP},
    {"CLONE_NEWUSER|CLONE_NEWNS", CLONE_NEWUSER | CLONE_NEWNS},
    {"CLONE_NEWUSER|CLONE_NEWNET", CLONE_NEWUSER | CLONE_NEWNET},
};

}  // namespace osb::probe
