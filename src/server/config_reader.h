#pragma once

// How config.cc reads its file: sections whose keys are typed, and the check that every key is known. Errors
// say file, line, key, cause and remedy, never the configured value.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "server/toml.h"

namespace osb::server {

// A parsed file, and what was found wrong with it so far. The first mistake is kept.
struct ConfigFile {
  const toml::table& root;
  std::string source;
  std::optional<Error> error = {};
  std::map<std::string, uint32_t> lines = {};  // of the keys that were read, by their dotted names

  // "config.toml:3", or without a line when the key is not in the file.
  std::string place(const std::string& key) const;
  void wrong(const std::string& key, std::string_view cause, std::string_view remedy);
};

// One section. After a mistake later reads give their defaults.
class Section {
 public:
  Section(ConfigFile& file, std::string name);

  bool has(std::string_view key) { return find(key) != nullptr; }
  void text(std::string_view key, std::string& out);
  void number(std::string_view key, int64_t low, int64_t high, const std::function<void(int64_t)>& set);
  void boolean(std::string_view key, bool& out);
  void texts(std::string_view key, std::vector<std::string>& out);
  void text_map(std::string_view key, std::map<std::string, std::string>& out);

  void wrong(std::string_view key, std::string_view cause, std::string_view remedy) {
    file_.wrong(path(key), cause, remedy);
  }

 private:
  std::string path(std::string_view key) const { return name_ + "." + std::string(key); }
  const toml::node* find(std::string_view key);

  ConfigFile& file_;
  std::string name_;
  const toml::table* table_ = nullptr;
};

// Every key and section is one of config_keys.h: else an error with a line for each that is not. The result
// is a sentence for each key of other servers, in the order of the file.
Result<std::vector<std::string>> check_keys(const ConfigFile& file);

}  // namespace osb::server
