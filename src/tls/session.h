#pragma once

// The client's side of TLS, by OpenSSL, which is loaded when a registry is first spoken to and not before: a
// service that pulls nothing does not carry it. Belongs to one thread.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::registry {

// Whom to believe: the system's trust store, and further certificates (texts in PEM form).
class Trust {
 public:
  // Code::internal when the library is not installed, or a text has no certificate in it.
  static Result<Trust> load(const std::vector<std::string>& extra);
  Trust(Trust&&) noexcept;
  ~Trust();

 private:
  friend class TlsSession;
  struct Impl;
  explicit Trust(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// One connection, over a socket that the caller keeps. The certificate must be for `host`, a name or an
// address.
class TlsSession {
 public:
  static Result<TlsSession> connect(const Trust& trust, int socket, const std::string& host);
  TlsSession(TlsSession&&) noexcept;
  TlsSession& operator=(TlsSession&&) noexcept;
  ~TlsSession();

  // 0 at the end of the stream: a proper one only, a connection that was cut is Code::unavailable.
  Result<size_t> read(std::span<char> into);
  Result<void> write(std::string_view bytes);

 private:
  struct Impl;
  explicit TlsSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace osb::registry
