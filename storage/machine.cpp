// Where the daemon's clock, boot id and randomness come from.
#include <openssl/rand.h>
#include <time.h>

#include <array>
#include <fstream>
#include <string>

#include "actors/core/digest.hpp"
#include "storage/journal_log.hpp"

namespace busbar::storage {
namespace {

std::int64_t read_clock(clockid_t which) {
  timespec now{};
  clock_gettime(which, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

core::instant machine_instant() { return {read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_REALTIME)}; }

std::string machine_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string new_uuid() {
  std::array<unsigned char, 16> bytes{};
  RAND_bytes(bytes.data(), static_cast<int>(bytes.size()));
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string text = core::to_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const std::size_t at : {8U, 13U, 18U, 23U}) text.insert(at, 1, '-');
  return text;
}

}  // namespace busbar::storage
