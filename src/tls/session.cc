#include "tls/session.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <signal.h>

#include <algorithm>
#include <climits>

#include "tls/functions.h"

namespace osb::tls {
namespace {

struct Library {
#define OSB_MEMBER(name) decltype(&::name) name = nullptr;
  OSB_SSL_FUNCTIONS(OSB_MEMBER)
  OSB_SSL_CRYPTO_FUNCTIONS(OSB_MEMBER)
#undef OSB_MEMBER
};

Library ssl;

Result<void> load_library() {
  if (ssl.SSL_CTX_new) return {};
  void* secure = ::dlopen("libssl.so.3", RTLD_LAZY | RTLD_LOCAL);
  void* crypto = ::dlopen("libcrypto.so.3", RTLD_LAZY | RTLD_LOCAL);
  if (!secure || !crypto) {
    return fail(Code::internal,
                "TLS needs libssl.so.3, which is not installed\n  remedy: apt-get install libssl3");
  }
  Library found;
#define OSB_FIND(name)                                                         \
  found.name = reinterpret_cast<decltype(found.name)>(::dlsym(secure, #name)); \
  if (!found.name) return fail(Code::internal, "the installed libssl has no " #name);
  OSB_SSL_FUNCTIONS(OSB_FIND)
#undef OSB_FIND
#define OSB_FIND(name)                                                         \
  found.name = reinterpret_cast<decltype(found.name)>(::dlsym(crypto, #name)); \
  if (!found.name) return fail(Code::internal, "the installed libcrypto has no " #name);
  OSB_SSL_CRYPTO_FUNCTIONS(OSB_FIND)
#undef OSB_FIND
  ssl = found;
  return {};
}

// The library's own words for what went wrong last.
std::string last_words() {
  unsigned long code = ssl.ERR_get_error();
  if (code == 0) return "the connection was closed";
  char text[200];
  ssl.ERR_error_string_n(code, text, sizeof text);
  ssl.ERR_clear_error();
  return text;
}

Result<void> add_certificates(SSL_CTX* context, const std::string& text, const std::string& where) {
  BIO* bytes = ssl.BIO_new_mem_buf(text.data(), static_cast<int>(std::min<size_t>(text.size(), INT_MAX)));
  if (!bytes) return fail(Code::internal, "TLS: " + last_words());
  int count = 0;
  while (X509* one = ssl.PEM_read_bio_X509(bytes, nullptr, nullptr, nullptr)) {
    count += ssl.X509_STORE_add_cert(ssl.SSL_CTX_get_cert_store(context), one);
    ssl.X509_free(one);
  }
  ssl.ERR_clear_error();  // the end of the text is one
  ssl.BIO_free(bytes);
  if (count == 0) return fail(Code::internal, "a file of " + where + " has no certificate (PEM) in it");
  return {};
}

// OpenSSL writes with write(2), so one to a connection that the other side has closed is a signal, which ends
// a program that has not ignored it. Within this scope it is an error like others.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    if (::sigismember(&before_, SIGPIPE) == 1) return;
    constexpr timespec kAtOnce{};
    while (::sigtimedwait(&pipe_, nullptr, &kAtOnce) == SIGPIPE) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

bool is_address(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 || ::inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

}  // namespace

struct Trust::Impl {
  SSL_CTX* context = nullptr;
  std::string where;
  ~Impl() { ssl.SSL_CTX_free(context); }
};

Trust::Trust(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trust::Trust(Trust&&) noexcept = default;
Trust::~Trust() = default;

Result<Trust> Trust::load(const std::vector<std::string>& extra, std::string where, Roots roots) {
  TRY(load_library());
  auto impl = std::make_unique<Impl>();
  impl->where = std::move(where);
  impl->context = ssl.SSL_CTX_new(ssl.TLS_client_method());
  if (!impl->context) return fail(Code::internal, "TLS: " + last_words());
  ssl.SSL_CTX_ctrl(impl->context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  ssl.SSL_CTX_set_verify(impl->context, SSL_VERIFY_PEER, nullptr);
  // A host without a trust store believes nobody but the extra files.
  if (roots == Roots::system_and_given) (void)ssl.SSL_CTX_set_default_verify_paths(impl->context);
  for (const std::string& text : extra) TRY(add_certificates(impl->context, text, impl->where));
  return Trust(std::move(impl));
}

Result<void> Trust::identify(const std::string& certificate_file, const std::string& key_file) {
  ssl.ERR_clear_error();
  if (ssl.SSL_CTX_use_certificate_chain_file(impl_->context, certificate_file.c_str()) != 1)
    return fail(Code::invalid_argument, "the client certificate: " + last_words());
  // Refused when it is not the key of that certificate.
  if (ssl.SSL_CTX_use_PrivateKey_file(impl_->context, key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    return fail(Code::invalid_argument, "the key of the client certificate: " + last_words());
  return {};
}

namespace {

using Bytes = std::unique_ptr<BIO, void (*)(BIO*)>;

Bytes reading(const std::string& text) {
  int size = static_cast<int>(std::min<size_t>(text.size(), INT_MAX));
  return {ssl.BIO_new_mem_buf(text.data(), size), [](BIO* bytes) { ssl.BIO_free(bytes); }};
}

// Otherwise the library would ask at the terminal.
int no_password(char*, int, int, void*) { return 0; }

}  // namespace

Result<void> Trust::identify_by(const std::string& certificate, const std::string& key) {
  ssl.ERR_clear_error();
  Bytes certificates = reading(certificate), keys = reading(key);
  if (!certificates || !keys) return fail(Code::internal, "TLS: " + last_words());
  auto next = [&] { return ssl.PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr); };
  X509* own = next();
  bool taken = own && ssl.SSL_CTX_use_certificate(impl_->context, own) == 1;
  if (own) ssl.X509_free(own);
  if (!taken) return fail(Code::invalid_argument, "the client certificate: " + last_words());
  while (X509* above = next()) {
    // What is taken is the context's.
    if (ssl.SSL_CTX_ctrl(impl_->context, SSL_CTRL_EXTRA_CHAIN_CERT, 0, above) == 1) continue;
    ssl.X509_free(above);
    return fail(Code::invalid_argument, "the chain of the client certificate: " + last_words());
  }
  ssl.ERR_clear_error();  // the end of the text is one
  EVP_PKEY* secret = ssl.PEM_read_bio_PrivateKey(keys.get(), nullptr, no_password, nullptr);
  // Refused when it is not the key of that certificate.
  bool fits = secret && ssl.SSL_CTX_use_PrivateKey(impl_->context, secret) == 1;
  if (secret) ssl.EVP_PKEY_free(secret);
  if (!fits) return fail(Code::invalid_argument, "the key of the client certificate: " + last_words());
  return {};
}

struct Session::Impl {
  SSL* session = nullptr;
  std::string where;
  ~Impl() { ssl.SSL_free(session); }

  // After a call that did not succeed: what it waits for, or nothing.
  Wait wanted() const {
    int why = ssl.SSL_get_error(session, 0);
    if (why == SSL_ERROR_WANT_READ) return Wait::readable;
    return why == SSL_ERROR_WANT_WRITE ? Wait::writable : Wait::nothing;
  }

  static std::unexpected<Error> late(std::string_view what) {
    return fail(Code::timeout, std::string(what) + ": no answer in time");
  }
  std::unexpected<Error> failure(std::string_view what) {
    if (wanted() != Wait::nothing) return late(what);
    return fail(Code::unavailable, std::string(what) + ": " + last_words());
  }
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::prepare(const Trust& trust, int socket, const std::string& host) {
  auto impl = std::make_unique<Impl>();
  impl->where = trust.impl_->where;
  impl->session = ssl.SSL_new(trust.impl_->context);
  if (!impl->session || ssl.SSL_set_fd(impl->session, socket) != 1)
    return fail(Code::internal, "TLS: " + last_words());
  bool named = is_address(host)
                   ? ssl.X509_VERIFY_PARAM_set1_ip_asc(ssl.SSL_get0_param(impl->session), host.c_str()) == 1
                   : ssl.SSL_set1_host(impl->session, host.c_str()) == 1 &&
                         ssl.SSL_ctrl(impl->session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                                      const_cast<char*>(host.c_str())) == 1;
  if (!named) return fail(Code::internal, "TLS: " + last_words());
  return Session(std::move(impl));
}

Result<Wait> Session::handshake() {
  NoPipeSignal quiet;
  ssl.ERR_clear_error();
  if (ssl.SSL_connect(impl_->session) == 1) return Wait::nothing;
  if (long verdict = ssl.SSL_get_verify_result(impl_->session); verdict != X509_V_OK) {
    return fail(Code::unavailable, std::string("the certificate is not accepted: ") +
                                       ssl.X509_verify_cert_error_string(verdict) +
                                       "; if it is your own, name its authority in " + impl_->where);
  }
  if (Wait wait = impl_->wanted(); wait != Wait::nothing) return wait;
  return impl_->failure("TLS");
}

Result<Session> Session::connect(const Trust& trust, int socket, const std::string& host) {
  Session session = TRY(prepare(trust, socket, host));
  if (TRY(session.handshake()) != Wait::nothing) return Impl::late("TLS");
  return session;
}

Result<Session::Got> Session::read_now(std::span<char> into) {
  NoPipeSignal quiet;  // what it reads may have to be answered
  Got got;
  ssl.ERR_clear_error();
  if (ssl.SSL_read_ex(impl_->session, into.data(), into.size(), &got.count) == 1) return got;
  if (ssl.SSL_get_error(impl_->session, 0) == SSL_ERROR_ZERO_RETURN) return Got{};
  if (Wait wait = impl_->wanted(); wait != Wait::nothing) return Got{0, wait};
  return impl_->failure("read");
}

Result<Wait> Session::write_now(std::string_view bytes) {
  NoPipeSignal quiet;
  size_t count = 0;
  ssl.ERR_clear_error();
  if (bytes.empty()) return Wait::nothing;
  // Without partial writes: all of it, or a failure.
  if (ssl.SSL_write_ex(impl_->session, bytes.data(), bytes.size(), &count) == 1) return Wait::nothing;
  if (Wait wait = impl_->wanted(); wait != Wait::nothing) return wait;
  return impl_->failure("write");
}

void Session::end_writing() {
  NoPipeSignal quiet;
  ssl.ERR_clear_error();
  (void)ssl.SSL_shutdown(impl_->session);
  ssl.ERR_clear_error();
}

Result<size_t> Session::read(std::span<char> into) {
  Got got = TRY(read_now(into));
  if (got.wait != Wait::nothing) return Impl::late("read");
  return got.count;
}

Result<void> Session::write(std::string_view bytes) {
  if (TRY(write_now(bytes)) != Wait::nothing) return Impl::late("write");
  return {};
}

}  // namespace osb::tls
