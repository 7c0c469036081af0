#pragma once

// One stage of a build as its instructions change it: what the next sandbox is made from, its variables, and
// what the image will say about its processes. Values; nothing here runs or copies.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/dockerfile.h"
#include "cli/values.h"
#include "json/decode.h"

namespace osb::cli {

struct BuildStage {
  std::string image;     // what sandboxes of this stage are made from
  std::string snapshot;  // the same, once a step has changed a file
  // Names everything that this stage is made of so far: equal keys, equal files.
  std::string key;

  std::vector<Variable> env;  // with those of the base
  std::map<std::string, std::string> arguments;
  std::vector<std::string> shell = {"/bin/sh", "-c"};
  std::string workdir = "/";
  std::optional<std::string> user;  // absent: the base's

  // What the image says, beyond its base.
  std::vector<Variable> own_env;
  std::map<std::string, std::string> labels;
  std::set<std::string> ports;
  std::optional<std::string> own_workdir;
  std::optional<std::vector<std::string>> entrypoint, cmd;
  bool has_own_cmd = false;

  std::optional<std::string> find(std::string_view name) const;  // a variable
  Lookup lookup() const;
  void extend_key(const std::string& with);
  // What a program of a step gets.
  std::vector<Variable> environment() const;
  json::bj::object config() const;  // as POST /images/commit takes it
};

// Values of --build-arg, and of the ARGs before the first FROM.
struct BuildArguments {
  std::map<std::string, std::string> given, global;
  std::set<std::string> used = {};
};

// What a build for "linux/amd64" has without being told: TARGETPLATFORM, TARGETOS, TARGETARCH, TARGETVARIANT,
// and BUILD... of the same. An ARG without a value takes it over into its stage.
std::map<std::string, std::string> automatic_arguments(const std::string& platform);

// Those before the first FROM.
Result<void> read_global_arguments(const Dockerfile& file, BuildArguments& arguments);

// An instruction that changes no file. Errors have no line.
Result<void> apply(const Instruction& one, char escape, BuildArguments& arguments, BuildStage& stage);

// "/work" and "sub" -> "/work/sub".
std::string join_path(const std::string& workdir, const std::string& path);

}  // namespace osb::cli
