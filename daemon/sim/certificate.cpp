#include "daemon/sim/certificate.hpp"

#include <absl/status/status.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

namespace busbar::sim {

namespace {

constexpr long validity_s = 10L * 365 * 24 * 3600;

using key_ptr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using cert_ptr = std::unique_ptr<X509, decltype(&X509_free)>;
using bio_ptr = std::unique_ptr<BIO, decltype(&BIO_free)>;

std::string hex_of(const unsigned char* bytes, std::size_t size) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t each = 0; each < size; ++each) {
    text.push_back(digits[bytes[each] >> 4]);
    text.push_back(digits[bytes[each] & 15]);
  }
  return text;
}

std::string digest_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  X509_digest(certificate, EVP_sha256(), digest.data(), &size);
  return hex_of(digest.data(), size);
}

bool add_extension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()), &X509_EXTENSION_free);
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

absl::StatusOr<key_pair> to_pair(EVP_PKEY* key, X509* certificate) {
  const bio_ptr out(BIO_new(BIO_s_mem()), &BIO_free);
  if (PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1 ||
      PEM_write_bio_X509(out.get(), certificate) != 1) {
    return absl::InternalError("OpenSSL did not write a certificate");
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return key_pair{std::string(data, static_cast<std::size_t>(size)), digest_of(certificate)};
}

}  // namespace

std::string sha256_hex(const std::string& bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return hex_of(digest.data(), size);
}

absl::StatusOr<key_pair> make_certificate(const std::string& common_name, const std::string& address) {
  const key_ptr key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const cert_ptr certificate(X509_new(), &X509_free);
  if (key == nullptr || certificate == nullptr) {
    return absl::InternalError("OpenSSL did not make a P-256 key");
  }
  std::random_device random;
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()),
                          (std::uint64_t{random()} << 31) | random());
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), validity_s);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  if (!add_extension(certificate.get(), NID_subject_alt_name, "IP:" + address) ||
      !add_extension(certificate.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) {
    return absl::InternalError("OpenSSL did not sign the certificate of " + common_name);
  }
  return to_pair(key.get(), certificate.get());
}

absl::StatusOr<key_pair> certificate_at(const std::string& path, const std::string& common_name,
                                        const std::string& address) {
  if (std::ifstream in(path); in) {
    std::ostringstream text;
    text << in.rdbuf();
    key_pair pair{text.str(), ""};
    const bio_ptr source(BIO_new_mem_buf(pair.pem.data(), static_cast<int>(pair.pem.size())), &BIO_free);
    const cert_ptr certificate(PEM_read_bio_X509(source.get(), nullptr, nullptr, nullptr), &X509_free);
    if (certificate == nullptr) {
      return absl::DataLossError(path + " holds no certificate; remove it to get a new one");
    }
    pair.sha256 = digest_of(certificate.get());
    return pair;
  }
  auto pair = make_certificate(common_name, address);
  if (!pair.ok()) {
    return pair;
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << pair->pem;
  out.close();
  std::error_code ignored;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write,
                               ignored);
  if (!out) {
    return absl::UnavailableError("cannot write " + path);
  }
  return pair;
}

}  // namespace busbar::sim
