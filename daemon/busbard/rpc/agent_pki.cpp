#include "daemon/busbard/rpc/agent_pki.hpp"

#include <absl/strings/str_cat.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/bn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "daemon/agent/openssl_handles.hpp"
#include "daemon/agent/x509.hpp"

namespace busbar::rpc {
namespace {

using agent_client::certificate_handle;
using agent_client::extension_handle;
using agent_client::key_handle;
using agent_client::last_openssl_error;

constexpr long ca_days = 3650;
constexpr long server_days = 825;
constexpr long backdate_s = 300;  // a tray's clock may be behind until it has synchronised

struct certificate_request {
  std::string common_name;
  long valid_seconds = 0;
  EVP_PKEY* subject_key = nullptr;
  X509* issuer = nullptr;  // null: signs itself
  EVP_PKEY* issuer_key = nullptr;
  std::vector<std::pair<int, std::string>> extensions;
};

bool set_serial(X509* certificate) {
  std::unique_ptr<BIGNUM, agent_client::openssl_deleter<BN_free>> number(BN_new());
  return number && BN_rand(number.get(), 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool add_extensions(X509* certificate, X509* issuer,
                    const std::vector<std::pair<int, std::string>>& extensions) {
  for (const auto& [nid, text] : extensions) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    extension_handle extension(X509V3_EXT_conf_nid(nullptr, &context, nid, text.c_str()));
    if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) return false;
  }
  return true;
}

absl::StatusOr<std::string> sign(const certificate_request& wanted) {
  certificate_handle certificate(X509_new());
  if (!certificate) return absl::InternalError("cannot make a certificate: " + last_openssl_error());
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const auto* name = reinterpret_cast<const unsigned char*>(wanted.common_name.data());
  X509* issuer = wanted.issuer != nullptr ? wanted.issuer : certificate.get();
  if (X509_set_version(certificate.get(), X509_VERSION_3) != 1 || !set_serial(certificate.get()) ||
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name,
                                 static_cast<int>(wanted.common_name.size()), -1, 0) != 1 ||
      X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer)) != 1 ||
      X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -backdate_s) == nullptr ||
      X509_gmtime_adj(X509_getm_notAfter(certificate.get()), wanted.valid_seconds) == nullptr ||
      X509_set_pubkey(certificate.get(), wanted.subject_key) != 1 ||
      !add_extensions(certificate.get(), issuer, wanted.extensions) ||
      X509_sign(certificate.get(), wanted.issuer_key, EVP_sha256()) <= 0) {
    return absl::InternalError("cannot sign a certificate for " + wanted.common_name + ": " +
                               last_openssl_error());
  }
  return agent_client::x509_to_pem(certificate.get());
}

absl::StatusOr<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || text.str().empty()) return absl::DataLossError("cannot read " + path.string());
  return text.str();
}

absl::Status failed(const char* what, const std::filesystem::path& path) {
  return absl::UnavailableError(absl::StrCat(what, " ", path.string(), ": ", std::strerror(errno)));
}

absl::Status write_synced(const std::filesystem::path& path, const std::string& text) {
  const std::string fresh = path.string() + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return failed("cannot create", fresh);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  const bool written = done == text.size() && ::fsync(fd) == 0;
  const bool closed = ::close(fd) == 0;
  if (!written || !closed) return failed("cannot write", fresh);
  if (::rename(fresh.c_str(), path.c_str()) != 0) return failed("cannot rename", fresh);
  return absl::OkStatus();
}

void sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

absl::StatusOr<key_and_certificate> agent_ca::create(const std::string& rack) {
  key_handle key(EVP_EC_gen("P-256"));
  if (!key) return absl::InternalError("cannot make a P-256 key: " + last_openssl_error());
  certificate_request wanted;
  wanted.common_name = "busbar agents of " + rack;
  wanted.valid_seconds = ca_days * 86400;
  wanted.subject_key = key.get();
  wanted.issuer_key = key.get();
  wanted.extensions = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                       {NID_key_usage, "critical,keyCertSign"},
                       {NID_subject_key_identifier, "hash"}};
  auto certificate = sign(wanted);
  if (!certificate.ok()) return certificate.status();
  return key_and_certificate{agent_client::key_to_pem(key.get()), *std::move(certificate)};
}

absl::StatusOr<agent_ca> agent_ca::from_pem(key_and_certificate pair) {
  const auto facts = agent_client::read_certificate(pair.certificate_pem);
  if (!facts.ok()) return facts.status();
  if (auto match = agent_client::key_matches(pair.key_pem, pair.certificate_pem); !match.ok()) return match;
  return agent_ca(std::move(pair), facts->sha256_hex);
}

absl::StatusOr<agent_ca> agent_ca::load_or_create(const std::filesystem::path& folder,
                                                  const std::string& rack) {
  const auto key_path = folder / "agent-ca.key";
  const auto certificate_path = folder / "agent-ca.crt";
  std::error_code ignored;
  const bool has_key = std::filesystem::exists(key_path, ignored);
  const bool has_certificate = std::filesystem::exists(certificate_path, ignored);
  if (has_certificate) {
    if (!has_key) return absl::DataLossError("no key beside " + certificate_path.string());
    auto key = read_file(key_path);
    if (!key.ok()) return key.status();
    auto certificate = read_file(certificate_path);
    if (!certificate.ok()) return certificate.status();
    return from_pem({*std::move(key), *std::move(certificate)});
  }
  // A key alone is what a crash between the two renames leaves; nothing was signed with it yet.
  std::filesystem::create_directories(folder, ignored);
  auto pair = create(rack);
  if (!pair.ok()) return pair.status();
  if (auto wrote = write_synced(key_path, pair->key_pem); !wrote.ok()) return wrote;
  if (auto wrote = write_synced(certificate_path, pair->certificate_pem); !wrote.ok()) return wrote;
  sync_folder(folder);
  return from_pem(*std::move(pair));
}

absl::StatusOr<key_and_certificate> agent_ca::issue_server(const std::vector<std::string>& addresses) const {
  const auto ca_key = agent_client::read_key(pair_.key_pem);
  const auto ca = agent_client::read_x509(pair_.certificate_pem);
  key_handle key(EVP_EC_gen("P-256"));
  if (!ca_key || !ca || !key)
    return absl::InternalError("cannot make the gate's key: " + last_openssl_error());
  std::string names = absl::StrCat("DNS:", std::string(agent_client::gate_server_name));
  for (const auto& address : addresses) {
    unsigned char binary[sizeof(in6_addr)];
    const bool ip =
        inet_pton(AF_INET, address.c_str(), binary) == 1 || inet_pton(AF_INET6, address.c_str(), binary) == 1;
    absl::StrAppend(&names, ip ? ",IP:" : ",DNS:", address);
  }
  certificate_request wanted;
  wanted.common_name = std::string(agent_client::gate_server_name);
  wanted.valid_seconds = server_days * 86400;
  wanted.subject_key = key.get();
  wanted.issuer = ca.get();
  wanted.issuer_key = ca_key.get();
  wanted.extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                       {NID_key_usage, "critical,digitalSignature"},
                       {NID_ext_key_usage, "serverAuth"},
                       {NID_subject_alt_name, names}};
  auto certificate = sign(wanted);
  if (!certificate.ok()) return certificate.status();
  return key_and_certificate{agent_client::key_to_pem(key.get()), *certificate + pair_.certificate_pem};
}

absl::StatusOr<std::string> agent_ca::sign_client(const std::string& csr_pem, const std::string& member,
                                                  std::chrono::seconds lifetime) const {
  if (auto digest = agent_client::csr_key_digest(csr_pem); !digest.ok()) return digest.status();
  const auto csr = agent_client::read_csr(csr_pem);
  const auto ca_key = agent_client::read_key(pair_.key_pem);
  const auto ca = agent_client::read_x509(pair_.certificate_pem);
  if (!csr || !ca_key || !ca) return absl::InternalError("cannot read the CA: " + last_openssl_error());
  certificate_request wanted;
  wanted.common_name = member;
  wanted.valid_seconds = static_cast<long>(lifetime.count());
  wanted.subject_key = X509_REQ_get0_pubkey(csr.get());
  wanted.issuer = ca.get();
  wanted.issuer_key = ca_key.get();
  wanted.extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                       {NID_key_usage, "critical,digitalSignature"},
                       {NID_ext_key_usage, "clientAuth"}};
  return sign(wanted);
}

}  // namespace busbar::rpc
