// Certificates made for a test: one authority, and what it signs. PEM files in a folder.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace busbar::test {

struct key_files {
  std::string cert;
  std::string key;
};

// Seconds from now.
struct validity {
  long from = -3600;
  long to = 3600;
};

class authority {
 public:
  authority(const std::filesystem::path& folder, const std::string& name)
      : folder_(folder), name_(name), key_(EVP_EC_gen("P-256")), cert_(make(name, key_.get(), nullptr, {}, true)) {
    save(cert_.get(), ca());
  }

  std::string ca() const { return (folder_ / (name_ + ".ca.pem")).string(); }

  // For this common name, at the address 127.0.0.1. An empty name: a certificate without one.
  key_files sign(const std::string& common_name, validity when = {}) {
    const key_ptr own(EVP_EC_gen("P-256"));
    const cert_ptr made = make(common_name, own.get(), this, when, false);
    const std::string stem = name_ + "-" + std::to_string(++count_);
    key_files files{(folder_ / (stem + ".pem")).string(), (folder_ / (stem + ".key")).string()};
    save(made.get(), files.cert);
    std::FILE* out = std::fopen(files.key.c_str(), "w");
    PEM_write_PrivateKey(out, own.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(out);
    return files;
  }

 private:
  struct closer {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* cert) const { X509_free(cert); }
    void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
  };
  using key_ptr = std::unique_ptr<EVP_PKEY, closer>;
  using cert_ptr = std::unique_ptr<X509, closer>;

  static void extend(X509* cert, X509* issuer, int id, const char* value) {
    X509V3_CTX context{};
    X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, closer> extension(X509V3_EXT_conf_nid(nullptr, &context, id, value));
    X509_add_ext(cert, extension.get(), -1);
  }

  cert_ptr make(const std::string& common_name, EVP_PKEY* own, const authority* by, validity when, bool is_authority) {
    cert_ptr made(X509_new());
    X509* const cert = made.get();
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(cert), when.from);
    X509_gmtime_adj(X509_getm_notAfter(cert), when.to);
    X509_set_pubkey(cert, own);
    if (!common_name.empty()) {
      X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
    }
    X509* const issuer = by == nullptr ? cert : by->cert_.get();
    X509_set_issuer_name(cert, X509_get_subject_name(issuer));
    extend(cert, issuer, NID_basic_constraints, is_authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (!is_authority) extend(cert, issuer, NID_subject_alt_name, "IP:127.0.0.1");
    X509_sign(cert, by == nullptr ? own : by->key_.get(), EVP_sha256());
    return made;
  }

  static void save(X509* cert, const std::string& path) {
    std::FILE* out = std::fopen(path.c_str(), "w");
    PEM_write_X509(out, cert);
    std::fclose(out);
  }

  std::filesystem::path folder_;
  std::string name_;
  long serial_ = 0;
  int count_ = 0;
  key_ptr key_;
  cert_ptr cert_;
};

}  // namespace busbar::test
