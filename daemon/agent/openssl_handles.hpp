// Owning handles of OpenSSL objects; for the .cpp files of the agent wire only.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace busbar::agent_client {

template <auto Free>
struct openssl_deleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

using bio_handle = std::unique_ptr<BIO, openssl_deleter<BIO_free>>;
using key_handle = std::unique_ptr<EVP_PKEY, openssl_deleter<EVP_PKEY_free>>;
using certificate_handle = std::unique_ptr<X509, openssl_deleter<X509_free>>;
using csr_handle = std::unique_ptr<X509_REQ, openssl_deleter<X509_REQ_free>>;
using store_handle = std::unique_ptr<X509_STORE, openssl_deleter<X509_STORE_free>>;
using store_context_handle = std::unique_ptr<X509_STORE_CTX, openssl_deleter<X509_STORE_CTX_free>>;
using extension_handle = std::unique_ptr<X509_EXTENSION, openssl_deleter<X509_EXTENSION_free>>;

inline bio_handle bio_over(const std::string& text) {
  return bio_handle(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

inline std::string bio_text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

inline key_handle read_key(const std::string& pem) {
  auto bio = bio_over(pem);
  return key_handle(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
}

inline certificate_handle read_x509(const std::string& pem) {
  auto bio = bio_over(pem);
  return certificate_handle(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

inline csr_handle read_csr(const std::string& pem) {
  auto bio = bio_over(pem);
  return csr_handle(PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr));
}

inline std::string x509_to_pem(X509* certificate) {
  bio_handle bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), certificate) != 1) return {};
  return bio_text(bio.get());
}

inline std::string key_to_pem(EVP_PKEY* key) {
  bio_handle bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return {};
  return bio_text(bio.get());
}

inline bool is_p256(EVP_PKEY* key) {
  char group[64] = {};
  std::size_t length = 0;
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
         EVP_PKEY_get_group_name(key, group, sizeof group, &length) == 1 &&
         (std::string(group, length) == "prime256v1" || std::string(group, length) == "P-256");
}

}  // namespace busbar::agent_client
