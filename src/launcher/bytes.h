#pragma once

// Values as bytes between server and launcher: little-endian integers, strings with their length in front.
// The reader is bounded by its input: anything that does not fit makes it fail, and reading on gives zeros
// and empty strings.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace osb::launcher {

class ByteWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_integral_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(std::string_view s) {
    number(static_cast<uint32_t>(s.size()));
    bytes_.append(s);
  }
  void flag(bool value) { number(static_cast<uint8_t>(value)); }
  // Last, without a length: it ends with the message.
  void rest(std::string_view s) { bytes_.append(s); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T number() {
    T value{};
    if (rest_.size() < sizeof value) {
      failed_ = true;
      return {};
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string string(size_t most = std::string::npos) {
    auto size = number<uint32_t>();
    if (failed_ || size > rest_.size() || size > most) {
      failed_ = true;
      return {};
    }
    std::string s(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return s;
  }
  bool flag() {
    auto value = number<uint8_t>();
    if (value > 1) failed_ = true;
    return value == 1;
  }
  std::string rest(size_t most = std::string::npos) {
    if (failed_ || rest_.size() > most) {
      failed_ = true;
      return {};
    }
    return std::string(std::exchange(rest_, {}));
  }
  // For values that could be read and mean nothing.
  void fail() { failed_ = true; }
  bool failed() const { return failed_; }
  bool complete() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace osb::launcher
