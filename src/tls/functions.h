#pragma once

// What is called of OpenSSL, by name: libssl is loaded when somebody is first spoken to, or is part of the
// executable where that is static.

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#define OSB_SSL_FUNCTIONS(X)            \
  X(TLS_client_method)                  \
  X(SSL_CTX_new)                        \
  X(SSL_CTX_free)                       \
  X(SSL_CTX_ctrl)                       \
  X(SSL_CTX_set_default_verify_paths)   \
  X(SSL_CTX_get_cert_store)             \
  X(SSL_CTX_set_verify)                 \
  X(SSL_CTX_use_PrivateKey)             \
  X(SSL_CTX_use_PrivateKey_file)        \
  X(SSL_CTX_use_certificate)            \
  X(SSL_CTX_use_certificate_chain_file) \
  X(SSL_new)                            \
  X(SSL_free)                           \
  X(SSL_ctrl)                           \
  X(SSL_set_fd)                         \
  X(SSL_set1_host)                      \
  X(SSL_get0_param)                     \
  X(SSL_connect)                        \
  X(SSL_shutdown)                       \
  X(SSL_read_ex)                        \
  X(SSL_write_ex)                       \
  X(SSL_get_error)                      \
  X(SSL_get_verify_result)

#define OSB_SSL_CRYPTO_FUNCTIONS(X) \
  X(BIO_new_mem_buf)                \
  X(BIO_free)                       \
  X(PEM_read_bio_X509)              \
  X(PEM_read_bio_PrivateKey)        \
  X(EVP_PKEY_free)                  \
  X(X509_STORE_add_cert)            \
  X(X509_free)                      \
  X(ERR_get_error)                  \
  X(ERR_clear_error)                \
  X(ERR_error_string_n)             \
  X(X509_VERIFY_PARAM_set1_ip_asc)  \
  X(X509_verify_cert_error_string)
