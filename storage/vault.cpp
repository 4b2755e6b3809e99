#include "storage/vault.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "actors/core/errors.hpp"

namespace busbar::storage {
namespace {

constexpr std::size_t key_bytes = 32;
constexpr std::size_t nonce_bytes = 12;
constexpr std::size_t tag_bytes = 16;
constexpr char sealed_format = 1;
// Proves on opening that the key is the one; no secret may have a name that begins with a zero byte.
const std::string check_name("\0check", 6);
constexpr std::string_view check_text = "busbar vault";

using cipher_context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

absl::Status key_refused(const std::string& path, std::string_view why) {
  return core::make_fault(core::fault::VAULT_KEY_REFUSED, fmt::format("vault key {}: {}", path, why));
}

absl::Status damaged(std::string_view name) {
  return core::make_fault(core::fault::VAULT_DAMAGED,
                          fmt::format("the secret '{}' does not verify: changed, moved, or sealed with another key", name));
}

// What is authenticated but not encrypted: the format and the name the secret belongs to.
std::string bound_to(std::string_view name) {
  std::string bound(1, sealed_format);
  bound.append("busbar-vault/");
  bound.append(name);
  return bound;
}

// format (1), nonce (12), ciphertext, tag (16). The nonce is fresh random 96 bits for each sealing.
absl::StatusOr<std::string> encrypt(std::string_view key, std::string_view name, std::string_view bytes) {
  std::string out(1 + nonce_bytes + bytes.size() + tag_bytes, '\0');
  out[0] = sealed_format;
  unsigned char* nonce = bytes_of(out) + 1;
  unsigned char* cipher = nonce + nonce_bytes;
  const std::string bound = bound_to(name);
  const cipher_context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int length = 0;
  const bool done =
      context != nullptr && RAND_bytes(nonce, static_cast<int>(nonce_bytes)) == 1 &&
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, bytes_of(key), nonce) == 1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &length, bytes_of(bound), static_cast<int>(bound.size())) == 1 &&
      EVP_EncryptUpdate(context.get(), cipher, &length, bytes_of(bytes), static_cast<int>(bytes.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), cipher + length, &length) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag_bytes), cipher + bytes.size()) == 1;
  if (!done) return absl::InternalError(fmt::format("sealing the secret '{}' failed in OpenSSL", name));
  return out;
}

absl::StatusOr<secret> decrypt(std::string_view key, std::string_view name, std::string_view sealed) {
  if (sealed.size() < 1 + nonce_bytes + tag_bytes || sealed[0] != sealed_format) return damaged(name);
  const unsigned char* nonce = bytes_of(sealed) + 1;
  const unsigned char* cipher = nonce + nonce_bytes;
  const std::size_t size = sealed.size() - 1 - nonce_bytes - tag_bytes;
  std::string tag(sealed.substr(sealed.size() - tag_bytes));
  const std::string bound = bound_to(name);
  std::string plain(size, '\0');
  const cipher_context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int length = 0;
  const bool good =
      context != nullptr &&
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, bytes_of(key), nonce) == 1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &length, bytes_of(bound), static_cast<int>(bound.size())) == 1 &&
      EVP_DecryptUpdate(context.get(), bytes_of(plain), &length, cipher, static_cast<int>(size)) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(tag_bytes), bytes_of(tag)) == 1 &&
      EVP_DecryptFinal_ex(context.get(), bytes_of(plain) + length, &length) == 1;
  secret result(std::move(plain));
  if (!good) return damaged(name);
  return result;
}

absl::StatusOr<secret> read_key(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return key_refused(path, std::generic_category().message(errno));
  struct stat facts {};
  std::string key(key_bytes, '\0');
  const bool known = ::fstat(file, &facts) == 0;
  const ssize_t got = known ? ::read(file, key.data(), key.size()) : -1;
  ::close(file);
  secret result(std::move(key));
  if (!known || !S_ISREG(facts.st_mode)) return key_refused(path, "is not a file");
  if ((facts.st_mode & 077) != 0) {
    return key_refused(path, fmt::format("others may use it (mode {:04o}, wanted 0600)", facts.st_mode & 07777));
  }
  if (facts.st_size != static_cast<off_t>(key_bytes) || got != static_cast<ssize_t>(key_bytes)) {
    return key_refused(path, fmt::format("has {} bytes, wanted {}", facts.st_size, key_bytes));
  }
  return result;
}

}  // namespace

// Never inside the object, where moving a short string would leave a copy behind.
constexpr std::size_t always_on_heap = 64;

secret::secret(std::string_view bytes) {
  bytes_.reserve(always_on_heap);
  bytes_.assign(bytes);
}
secret::secret(std::string&& bytes) : secret(std::string_view(bytes)) { OPENSSL_cleanse(bytes.data(), bytes.size()); }
secret::secret(secret&& other) noexcept { bytes_.swap(other.bytes_); }
secret& secret::operator=(secret&& other) noexcept {
  if (this != &other) {
    wipe();
    bytes_.swap(other.bytes_);
  }
  return *this;
}
secret::~secret() { wipe(); }
void secret::wipe() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
  bytes_.clear();
}

vault::vault(std::shared_ptr<store> below, secret key) : store_(std::move(below)), key_(std::move(key)) {}
vault::~vault() = default;

absl::StatusOr<std::shared_ptr<vault>> vault::open(std::shared_ptr<store> below, const std::string& key_file) {
  auto key = read_key(key_file);
  if (!key.ok()) return key.status();
  std::shared_ptr<vault> opened(new vault(std::move(below), std::move(*key)));
  const auto proof = opened->store_->get(family::vault, check_name);
  if (!proof.ok()) return proof.status();
  if (proof->has_value()) {
    const auto text = decrypt(opened->key_.reveal(), check_name, **proof);
    if (!text.ok() || text->reveal() != check_text) {
      return key_refused(key_file, "this store's secrets were sealed with another key");
    }
    return opened;
  }
  auto sealed = encrypt(opened->key_.reveal(), check_name, check_text);
  if (!sealed.ok()) return sealed.status();
  store_write write;
  write.put(family::vault, check_name, std::move(*sealed));
  if (const absl::Status done = opened->store_->write(write); !done.ok()) return done;
  return opened;
}

absl::StatusOr<core::sealed_secret> vault::seal(std::string_view name, std::string_view bytes) const {
  if (name.empty() || name[0] == '\0') return absl::InvalidArgumentError("a secret needs a name");
  auto sealed = encrypt(key_.reveal(), name, bytes);
  if (!sealed.ok()) return sealed.status();
  return core::sealed_secret{std::string(name), std::move(*sealed)};
}

absl::Status vault::put(std::string_view name, std::string_view bytes) {
  auto sealed = seal(name, bytes);
  if (!sealed.ok()) return sealed.status();
  store_write write;
  write.put(family::vault, std::move(sealed->name), std::move(sealed->bytes));
  return store_->write(write);
}

absl::Status vault::erase(std::string_view name) {
  if (name.empty() || name[0] == '\0') return absl::InvalidArgumentError("a secret needs a name");
  store_write write;
  write.erase(family::vault, std::string(name));
  return store_->write(write);
}

absl::StatusOr<secret> vault::get(std::string_view name) const {
  const auto sealed = store_->get(family::vault, name);
  if (!sealed.ok()) return sealed.status();
  if (!sealed->has_value()) {
    return core::make_fault(core::fault::UNKNOWN_TARGET, fmt::format("the vault holds no secret '{}'", name));
  }
  return decrypt(key_.reveal(), name, **sealed);
}

absl::StatusOr<std::vector<std::string>> vault::list() const {
  std::vector<std::string> names;
  const absl::Status done = store_->scan(family::vault, std::string_view("\1", 1), {},
                                         [&names](std::string_view key, std::string_view) {
                                           names.emplace_back(key);
                                           return true;
                                         });
  if (!done.ok()) return done;
  return names;
}

absl::Status new_key(const std::string& path) {
  std::string key(key_bytes, '\0');
  if (RAND_priv_bytes(bytes_of(key), static_cast<int>(key.size())) != 1) {
    return absl::InternalError("OpenSSL gave no random bytes for a key");
  }
  const secret fresh(std::move(key));
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    const int error = errno;
    const std::string text = fmt::format("make the key file {}: {}", path, std::generic_category().message(error));
    return error == EEXIST ? absl::AlreadyExistsError(text) : absl::UnavailableError(text);
  }
  const std::string_view bytes = fresh.reveal();
  const bool written = ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
                       ::fsync(file) == 0;
  ::close(file);
  if (written) return absl::OkStatus();
  ::unlink(path.c_str());
  return absl::UnavailableError(fmt::format("write the key file {}", path));
}

}  // namespace busbar::storage
