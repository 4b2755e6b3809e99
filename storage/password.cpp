#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "storage/vault.hpp"

namespace busbar::storage {
namespace {

constexpr std::size_t password_length = 24;
constexpr std::size_t least_of_each = 2;
// No 0/O, 1/l/I: people read these over the phone. Symbols are those that no shell, URI, JSON or YAML gives a meaning.
constexpr std::string_view upper = "ABCDEFGHJKLMNPQRSTUVWXYZ";
constexpr std::string_view lower = "abcdefghijkmnopqrstuvwxyz";
constexpr std::string_view digits = "23456789";
constexpr std::string_view symbols = "-_.";
constexpr std::array classes = {upper, lower, digits, symbols};

// Uniform in [0, bound); bytes that would favour low numbers are drawn again.
std::size_t draw(std::size_t bound) {
  const std::size_t fair = 256 - 256 % bound;
  for (;;) {
    unsigned char byte = 0;
    if (RAND_priv_bytes(&byte, 1) != 1) std::abort();  // no randomness: no password is better than a guessable one
    if (byte < fair) return byte % bound;
  }
}

char draw_from(std::string_view letters) { return letters[draw(letters.size())]; }

}  // namespace

secret generate_password() {
  std::string all;
  for (const std::string_view letters : classes) all.append(letters);
  std::string password;
  password.reserve(password_length);
  for (const std::string_view letters : classes) {
    for (std::size_t i = 0; i < least_of_each; ++i) password.push_back(draw_from(letters));
  }
  while (password.size() < password_length) password.push_back(draw_from(all));
  for (std::size_t i = password.size() - 1; i > 0; --i) std::swap(password[i], password[draw(i + 1)]);
  // A leading symbol could be taken for an option: the first letter or digit changes places with it.
  for (std::size_t i = 1; i < password.size() && symbols.find(password[0]) != std::string_view::npos; ++i) {
    if (symbols.find(password[i]) == std::string_view::npos) std::swap(password[0], password[i]);
  }
  secret result(std::move(password));
  return result;
}

}  // namespace busbar::storage
