#pragma once

// The client's side of TLS, by OpenSSL, which is loaded when somebody is first spoken to by it and not
// before: a service that has no use for it does not carry it. Belongs to one thread.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::tls {

// Whom to believe: the system's trust store, and further certificates (texts in PEM form); or these alone.
class Trust {
 public:
  enum class Roots { system_and_given, given };
  // Code::internal when the library is not installed, or a text has no certificate in it. `where` says where
  // those texts are named, for whoever has to correct them.
  static Result<Trust> load(const std::vector<std::string>& extra, std::string where,
                            Roots roots = Roots::system_and_given);
  Trust(Trust&&) noexcept;
  ~Trust();

  // Who we are, for a server that asks: files in PEM form, the key unencrypted. Code::invalid_argument when
  // they cannot be read, or are not for each other.
  Result<void> identify(const std::string& certificate_file, const std::string& key_file);
  // The same with the texts of such files, for who may not read them.
  Result<void> identify_by(const std::string& certificate, const std::string& key);

 private:
  friend class Session;
  struct Impl;
  explicit Trust(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What has to be awaited before a call on a socket that does not block is made again, with the same bytes.
enum class Wait { nothing, readable, writable };

// One connection, over a socket that the caller keeps. Errors do not name the host: not everybody who reads
// them may know it. The certificate must be for `host`, a name or an
// address.
class Session {
 public:
  static Result<Session> connect(const Trust& trust, int socket, const std::string& host);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // For a socket that does not block: without the handshake, which is called until nothing is to be awaited.
  static Result<Session> prepare(const Trust& trust, int socket, const std::string& host);
  Result<Wait> handshake();
  struct Got {
    size_t count = 0;  // 0 with nothing to await: the end
    Wait wait = Wait::nothing;
  };
  Result<Got> read_now(std::span<char> into);
  Result<Wait> write_now(std::string_view bytes);
  // Says that nothing more is written; the other side may go on. Not repeated when it does not fit now.
  void end_writing();

  // For one that does; a wait that is over is Code::timeout.
  // 0 at the end of the stream: a proper one only, a connection that was cut is Code::unavailable.
  Result<size_t> read(std::span<char> into);
  Result<void> write(std::string_view bytes);

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace osb::tls
