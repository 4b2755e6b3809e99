#include "daemon/agent/x509.hpp"

#include <absl/strings/escaping.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <cstdlib>
#include <ctime>
#include <vector>

#include "daemon/agent/openssl_handles.hpp"

namespace busbar::agent_client {
namespace {

absl::Status bad(const std::string& what) {
  return absl::InvalidArgumentError(what + ": " + last_openssl_error());
}

std::string hex(const unsigned char* bytes, std::size_t size) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes), size));
}

std::string digest_of(X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1) return {};
  return hex(digest, size);
}

std::int64_t unix_seconds(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return static_cast<std::int64_t>(timegm(&parts));
}

std::vector<certificate_handle> read_chain(const std::string& pem) {
  std::vector<certificate_handle> chain;
  auto bio = bio_over(pem);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    chain.emplace_back(next);
    if (chain.size() > 8) break;
  }
  ERR_clear_error();
  return chain;
}

}  // namespace

std::string last_openssl_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "no detail";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "unnamed OpenSSL error";
}

absl::StatusOr<std::string> new_key_pem() {
  key_handle key(EVP_EC_gen("P-256"));
  if (!key) return absl::InternalError("cannot make a P-256 key: " + last_openssl_error());
  return key_to_pem(key.get());
}

absl::StatusOr<std::string> make_csr(const std::string& key_pem, const std::string& common_name) {
  const auto key = read_key(key_pem);
  if (!key) return bad("private key cannot be read");
  csr_handle csr(X509_REQ_new());
  X509_NAME* name = csr ? X509_REQ_get_subject_name(csr.get()) : nullptr;
  const auto* text = reinterpret_cast<const unsigned char*>(common_name.data());
  if (name == nullptr || X509_REQ_set_version(csr.get(), X509_REQ_VERSION_1) != 1 ||
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, static_cast<int>(common_name.size()), -1,
                                 0) != 1 ||
      X509_REQ_set_pubkey(csr.get(), key.get()) != 1 ||
      X509_REQ_sign(csr.get(), key.get(), EVP_sha256()) <= 0) {
    return absl::InternalError("cannot make a certificate request: " + last_openssl_error());
  }
  bio_handle bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509_REQ(bio.get(), csr.get()) != 1) {
    return absl::InternalError("cannot write a certificate request: " + last_openssl_error());
  }
  return bio_text(bio.get());
}

absl::StatusOr<certificate_facts> read_certificate(const std::string& certificate_pem) {
  const auto certificate = read_x509(certificate_pem);
  if (!certificate) return bad("certificate cannot be read");
  certificate_facts facts;
  char name[256] = {};
  const int length =
      X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name, sizeof name);
  if (length > 0) facts.common_name.assign(name, static_cast<std::size_t>(length));
  facts.not_before = unix_seconds(X509_get0_notBefore(certificate.get()));
  facts.not_after = unix_seconds(X509_get0_notAfter(certificate.get()));
  facts.sha256_hex = digest_of(certificate.get());
  if (facts.not_after <= facts.not_before)
    return absl::InvalidArgumentError("certificate has no valid period");
  return facts;
}

absl::StatusOr<std::string> csr_key_digest(const std::string& csr_pem) {
  if (csr_pem.size() > 16384) return absl::InvalidArgumentError("certificate request is over 16 KiB");
  const auto csr = read_csr(csr_pem);
  if (!csr) return bad("certificate request cannot be read");
  EVP_PKEY* key = X509_REQ_get0_pubkey(csr.get());
  if (key == nullptr || !is_p256(key))
    return absl::InvalidArgumentError("certificate request: the key is not P-256");
  if (X509_REQ_verify(csr.get(), key) != 1)
    return bad("certificate request: its own signature does not hold");
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  if (size <= 0) return bad("certificate request: the key cannot be written");
  std::string bytes(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return sha256_hex(bytes);
}

absl::Status key_matches(const std::string& key_pem, const std::string& certificate_pem) {
  const auto key = read_key(key_pem);
  const auto certificate = read_x509(certificate_pem);
  if (!key || !certificate || X509_check_private_key(certificate.get(), key.get()) != 1) {
    return bad("certificate and key do not belong together");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> verify_server_chain(const std::string& leaf_pem, const std::string& chain_pem,
                                                const std::string& ca_sha256_hex) {
  const auto leaf = read_x509(leaf_pem);
  if (!leaf) return bad("the server's certificate cannot be read");
  const auto chain = read_chain(chain_pem);
  X509* anchor = nullptr;
  for (const auto& certificate : chain) {
    if (digest_of(certificate.get()) == ca_sha256_hex) anchor = certificate.get();
  }
  if (anchor == nullptr)
    return absl::UnauthenticatedError("the server did not show the CA that the token names");
  store_handle store(X509_STORE_new());
  store_context_handle context(X509_STORE_CTX_new());
  if (!store || !context || X509_STORE_add_cert(store.get(), anchor) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), nullptr) != 1 ||
      X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_SSL_SERVER) != 1) {
    return absl::InternalError("cannot prepare a certificate check: " + last_openssl_error());
  }
  if (X509_verify_cert(context.get()) != 1) {
    return absl::UnauthenticatedError(std::string("the server's certificate does not hold: ") +
                                      X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())));
  }
  if (X509_check_host(leaf.get(), gate_server_name.data(), gate_server_name.size(), 0, nullptr) != 1) {
    return absl::UnauthenticatedError("the server's certificate is not an agent gate's");
  }
  return x509_to_pem(anchor);
}

std::string sha256_hex(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return hex(digest, sizeof digest);
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  // Without randomness no key or token may be made: there is nothing to go on with.
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) std::abort();
  return bytes;
}

}  // namespace busbar::agent_client
