#pragma once

// What a client asked for, as a registry knows it: "python:3.12" is the tag 3.12 of library/python at
// docker.io.

#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::image {

inline constexpr char kDockerHub[] = "docker.io";

struct PullReference {
  std::string registry;    // host, with a port where one was given
  std::string repository;  // "library/python"
  std::string tag;         // "" when there is a digest and no tag
  std::string digest;      // hexadecimal digits of a SHA-256; "" for whatever the tag names

  // The one name that every spelling of this reference has; also the name of the image here.
  std::string name() const;
  // What the registry is asked for: a digest pins the image, whatever the tag says by now.
  std::string version() const { return digest.empty() ? tag : "sha256:" + digest; }
};

// `default_registry` has images whose name begins with no host. Code::invalid_argument says what is wrong.
Result<PullReference> parse_pull_reference(std::string_view asked, std::string_view default_registry);

// "registry.example", "10.0.0.1:5000", "[::1]:5000": letters, digits, dots and dashes, or an address in
// brackets as the kernel spells it, and perhaps a port.
bool is_registry_host(std::string_view text);

}  // namespace osb::image
