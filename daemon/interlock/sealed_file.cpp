#include "daemon/interlock/sealed_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace busbar::interlock {
namespace {

constexpr std::string_view magic = "BBSEAL1\n";
constexpr std::size_t nonce_size = 12;
constexpr std::size_t tag_size = 16;
constexpr std::size_t file_max = 1U << 20U;

class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status failed(std::string_view what, const std::string& path) {
  return absl::UnavailableError(fmt::format("{} {}: {}", what, path, std::strerror(errno)));
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

using cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

cipher make_cipher() {
  return {EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free};
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

std::string header_of(std::string_view rack, std::uint64_t generation) {
  std::string header(magic);
  for (int shift = 56; shift >= 0; shift -= 8)
    header.push_back(static_cast<char>((generation >> shift) & 0xFFU));
  header.push_back(static_cast<char>(rack.size()));
  header.append(rack);
  return header;
}

struct sealed_parts {
  std::string_view header;
  std::uint64_t generation = 0;
  std::string_view rack;
  std::string_view nonce;
  std::string_view tag;
  std::string_view body;
};

std::optional<sealed_parts> cut(std::string_view sealed) {
  const std::size_t fixed = magic.size() + 8 + 1;
  if (sealed.size() < fixed || sealed.substr(0, magic.size()) != magic) return std::nullopt;
  const auto rack_size = static_cast<unsigned char>(sealed[fixed - 1]);
  if (sealed.size() < fixed + rack_size + nonce_size + tag_size) return std::nullopt;
  sealed_parts parts;
  parts.header = sealed.substr(0, fixed + rack_size);
  for (std::size_t i = 0; i < 8; ++i) {
    parts.generation = (parts.generation << 8U) | static_cast<unsigned char>(sealed[magic.size() + i]);
  }
  parts.rack = sealed.substr(fixed, rack_size);
  parts.nonce = sealed.substr(fixed + rack_size, nonce_size);
  parts.tag = sealed.substr(fixed + rack_size + nonce_size, tag_size);
  parts.body = sealed.substr(fixed + rack_size + nonce_size + tag_size);
  return parts;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

absl::Status make_key_file(const std::string& path) {
  seal_key key{};
  if (RAND_bytes(key.data(), static_cast<int>(key.size())) != 1)
    return absl::InternalError("no random bytes");
  const descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) {
    if (errno == EEXIST) return absl::AlreadyExistsError(path + " exists; a key is never overwritten");
    return failed("cannot create", path);
  }
  const bool written = write_all(file.get(), {reinterpret_cast<const char*>(key.data()), key.size()});
  OPENSSL_cleanse(key.data(), key.size());
  if (!written || ::fsync(file.get()) != 0) return failed("cannot write", path);
  return absl::OkStatus();
}

absl::StatusOr<seal_key> read_key_file(const std::string& path) {
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return failed("cannot open the key file", path);
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return failed("cannot read the key file", path);
  if (!S_ISREG(facts.st_mode) || facts.st_size != 32) {
    return absl::FailedPreconditionError(
        path + " is not a file of 32 bytes (busbar-interlock key new PATH makes one)");
  }
  if ((facts.st_mode & 0077U) != 0)
    return absl::FailedPreconditionError(path + " can be touched by others than its owner: chmod 0600");
  seal_key key{};
  if (::read(file.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size()))
    return failed("cannot read", path);
  return key;
}

absl::StatusOr<std::string> seal_record(const seal_key& key, const ArmingRecord& record) {
  if (record.rack().size() > 255) return absl::InvalidArgumentError("the rack's name is too long");
  const std::string header = header_of(record.rack(), record.generation());
  std::string plain = record.SerializeAsString();
  std::string nonce(nonce_size, '\0');
  std::string tag(tag_size, '\0');
  std::string body(plain.size(), '\0');
  const cipher context = make_cipher();
  int length = 0;
  const bool sealed =
      RAND_bytes(bytes_of(nonce), static_cast<int>(nonce_size)) == 1 &&
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.data(), bytes_of(nonce)) == 1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &length, bytes_of(std::string_view(header)),
                        static_cast<int>(header.size())) == 1 &&
      EVP_EncryptUpdate(context.get(), bytes_of(body), &length, bytes_of(std::string_view(plain)),
                        static_cast<int>(plain.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), bytes_of(body) + length, &length) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, tag_size, tag.data()) == 1;
  OPENSSL_cleanse(plain.data(), plain.size());
  if (!sealed) return absl::InternalError("AES-256-GCM failed");
  return header + nonce + tag + body;
}

absl::StatusOr<ArmingRecord> open_record(const seal_key& key, std::string_view sealed,
                                         std::string_view rack) {
  const std::optional<sealed_parts> parts = cut(sealed);
  if (!parts.has_value()) return absl::DataLossError("the sealed record is damaged");
  if (parts->rack != rack) {
    return absl::FailedPreconditionError(
        fmt::format("the sealed record is of rack {}, this is {}", parts->rack, rack));
  }
  std::string plain(parts->body.size(), '\0');
  std::string tag(parts->tag);
  const cipher context = make_cipher();
  int length = 0;
  const bool opened = EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.data(),
                                         bytes_of(parts->nonce)) == 1 &&
                      EVP_DecryptUpdate(context.get(), nullptr, &length, bytes_of(parts->header),
                                        static_cast<int>(parts->header.size())) == 1 &&
                      EVP_DecryptUpdate(context.get(), bytes_of(plain), &length, bytes_of(parts->body),
                                        static_cast<int>(parts->body.size())) == 1 &&
                      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, tag_size, tag.data()) == 1 &&
                      EVP_DecryptFinal_ex(context.get(), bytes_of(plain) + length, &length) == 1;
  ArmingRecord record;
  const bool parsed = opened && record.ParseFromString(plain);
  OPENSSL_cleanse(plain.data(), plain.size());
  if (!opened) return absl::DataLossError("the sealed record does not open: another key, or it was changed");
  if (!parsed || record.rack() != rack || record.generation() != parts->generation) {
    return absl::DataLossError("the sealed record contradicts its own header");
  }
  return record;
}

absl::Status replace_file(const std::string& path, std::string_view content) {
  const std::string beside = path + ".new";
  {
    const descriptor file(
        ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return failed("cannot create", beside);
    if (!write_all(file.get(), content) || ::fsync(file.get()) != 0) return failed("cannot write", beside);
  }
  if (::rename(beside.c_str(), path.c_str()) != 0) return failed("cannot rename to", path);
  const descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) return failed("cannot sync the folder of", path);
  return absl::OkStatus();
}

absl::StatusOr<std::string> read_file(const std::string& path) {
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT) return absl::NotFoundError(path);
    return failed("cannot open", path);
  }
  std::string content;
  char bytes[16384];
  for (;;) {
    const ssize_t got = ::read(file.get(), bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("cannot read", path);
    if (got == 0) return content;
    content.append(bytes, static_cast<std::size_t>(got));
    if (content.size() > file_max) return absl::DataLossError(path + " is larger than 1 MiB");
  }
}

}  // namespace busbar::interlock
