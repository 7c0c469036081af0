// Where a static executable looks names up. The C library would load a module for every word in
// nsswitch.conf, built for another C library than the one that it is linked with; files and DNS are built in,
// and these alone are asked.

#include <nss.h>
#include <unistd.h>

#include <cstdlib>

namespace {

// Where distributions keep the authorities that they trust. OpenSSL knows the place of the one that it was
// built for.
constexpr const char* kAuthorities[] = {"/etc/ssl/certs/ca-certificates.crt",
                                        "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                        "/etc/ssl/cert.pem"};

constexpr const char* kFileDatabases[] = {"passwd", "group", "shadow", "services", "protocols"};

[[gnu::constructor]] void look_in_what_is_built_in() {
  ::__nss_configure_lookup("hosts", "files dns");
  for (const char* database : kFileDatabases) ::__nss_configure_lookup(database, "files");
  for (const char* file : kAuthorities) {
    if (::access(file, R_OK) == 0) {
      ::setenv("SSL_CERT_FILE", file, 0);
      break;
    }
  }
}

}  // namespace
