#include "storage/history_page.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace busbar::storage {
namespace {

static_assert(std::endian::native == std::endian::little, "pages are written as they lie in memory");

constexpr std::uint32_t magic = 0x31484242;  // "BBH1"
constexpr std::uint32_t most_series = 1u << 20;
constexpr std::uint32_t most_bytes = 256u << 20;
constexpr int most_decimals = 4;
constexpr double most_scaled = 4e15;  // whole numbers are exact below

enum class form : std::uint8_t {
  constant = 0,
  decimals = 1,
  doubles = 8
};  // decimals + n: n digits behind the point

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? (value >> 1) ^ 0x82F63B78u : value >> 1;
    table[i] = value;
  }
  return table;
}();

std::uint32_t check_of(std::string_view bytes, std::uint32_t from = 0) {
  std::uint32_t value = ~from;
  for (const char c : bytes) value = crc_table[(value ^ static_cast<unsigned char>(c)) & 0xFF] ^ (value >> 8);
  return ~value;
}

template <class T>
void put(std::string& to, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  to.append(bytes, sizeof(T));
}

template <class T>
T get(std::string_view from, std::size_t at) {
  T value{};
  std::memcpy(&value, from.data() + at, sizeof(T));
  return value;
}

void put_varint(std::string& to, std::int64_t value) {
  auto zigzag = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  while (zigzag >= 0x80) {
    to += static_cast<char>(zigzag | 0x80);
    zigzag >>= 7;
  }
  to += static_cast<char>(zigzag);
}

std::optional<std::int64_t> get_varint(std::string_view& from) {
  std::uint64_t zigzag = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    zigzag |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return static_cast<std::int64_t>(zigzag >> 1) ^ -static_cast<std::int64_t>(zigzag & 1);
  }
  return std::nullopt;
}

double power_of_ten(int exponent) {
  constexpr std::array<double, most_decimals + 1> powers = {1, 10, 100, 1'000, 10'000};
  return powers[static_cast<std::size_t>(exponent)];
}

// The fewest decimals that give every value back to the bit; nullopt: no few do.
std::optional<int> decimals_of(const std::vector<double>& values) {
  int decimals = 0;
  for (const double value : values) {
    while (true) {
      const double scaled = std::round(value * power_of_ten(decimals));
      if (std::fabs(scaled) > most_scaled) return std::nullopt;
      if (scaled / power_of_ten(decimals) == value && !(scaled == 0 && std::signbit(value))) break;
      if (++decimals > most_decimals) return std::nullopt;
    }
  }
  return decimals;
}

void put_values(std::string& to, const std::vector<double>& values) {
  const bool constant = std::all_of(values.begin(), values.end(), [first = values.front()](double value) {
    return std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(first);
  });
  if (constant) {
    to += static_cast<char>(form::constant);
    return put(to, values.front());
  }
  const auto decimals = decimals_of(values);
  if (!decimals) {
    to += static_cast<char>(form::doubles);
    for (const double value : values) put(to, value);
    return;
  }
  to += static_cast<char>(static_cast<int>(form::decimals) + *decimals);
  std::int64_t last = 0;
  for (const double value : values) {
    const auto scaled = static_cast<std::int64_t>(std::llround(value * power_of_ten(*decimals)));
    put_varint(to, scaled - last);
    last = scaled;
  }
}

bool get_decimals(std::string_view from, int decimals, std::vector<double>& values) {
  std::int64_t last = 0;
  for (double& value : values) {
    const auto step = get_varint(from);
    if (!step || std::fabs(static_cast<double>(*step)) > 2 * most_scaled ||
        std::fabs(static_cast<double>(last)) > most_scaled) {
      return false;
    }
    last += *step;
    value = static_cast<double>(last) / power_of_ten(decimals);
  }
  return from.empty();
}

bool get_values(std::string_view from, std::vector<double>& values) {
  if (from.empty()) return false;
  const auto what = static_cast<unsigned char>(from.front());
  from.remove_prefix(1);
  if (what == static_cast<unsigned char>(form::constant)) {
    if (from.size() != sizeof(double)) return false;
    std::fill(values.begin(), values.end(), get<double>(from, 0));
    return true;
  }
  if (what == static_cast<unsigned char>(form::doubles)) {
    if (from.size() != values.size() * sizeof(double)) return false;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = get<double>(from, i * sizeof(double));
    return true;
  }
  const int decimals = what - static_cast<int>(form::decimals);
  return decimals >= 0 && decimals <= most_decimals && get_decimals(from, decimals, values);
}

}  // namespace

std::uint64_t history_key(std::string_view name) {
  std::uint64_t hash = 14'695'981'039'346'656'037ULL;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1'099'511'628'211ULL;
  return hash;
}

std::string encode_header(const page_header& header) {
  std::string bytes;
  put(bytes, magic);
  put(bytes, header.start_s);
  put(bytes, header.step_s);
  put(bytes, header.steps);
  put(bytes, header.lanes);
  put(bytes, header.series);
  put(bytes, header.bytes);
  put(bytes, std::uint32_t{0});  // for later
  put(bytes, check_of(bytes));
  return bytes;
}

std::optional<page_header> decode_header(std::string_view bytes) {
  if (bytes.size() < page_header_size || get<std::uint32_t>(bytes, 0) != magic) return std::nullopt;
  if (get<std::uint32_t>(bytes, 36) != check_of(bytes.substr(0, 36))) return std::nullopt;
  page_header header;
  header.start_s = get<std::int64_t>(bytes, 4);
  header.step_s = get<std::uint32_t>(bytes, 12);
  header.steps = get<std::uint32_t>(bytes, 16);
  header.lanes = get<std::uint32_t>(bytes, 20);
  header.series = get<std::uint32_t>(bytes, 24);
  header.bytes = get<std::uint32_t>(bytes, 28);
  const bool sane = header.step_s > 0 && header.steps <= most_page_steps &&
                    (header.lanes == 1 || header.lanes == 3) && header.series <= most_series &&
                    header.bytes <= most_bytes && header.bytes >= header.series * page_entry_size;
  return sane ? std::optional(header) : std::nullopt;
}

page_entry decode_entry(std::string_view bytes) {
  return {get<std::uint64_t>(bytes, 0), get<std::uint32_t>(bytes, 8)};
}

std::string encode_block(std::uint64_t key, const block_values& block) {
  std::string content;
  put(content, std::uint16_t{0});
  put(content, block.mask);
  put_values(content, block.values);
  const auto size = static_cast<std::uint16_t>(content.size() + sizeof(std::uint32_t));
  std::memcpy(content.data(), &size, sizeof size);
  std::string keyed;
  put(keyed, key);
  put(content, check_of(content, check_of(keyed)));
  return content;
}

std::size_t block_size(std::string_view first_bytes) {
  return first_bytes.size() < block_size_bytes ? 0 : get<std::uint16_t>(first_bytes, 0);
}

std::optional<block_values> decode_block(std::string_view bytes, std::uint64_t key, std::uint32_t lanes) {
  constexpr std::size_t around = 2 + 8 + 4;
  const std::size_t size = block_size(bytes);
  if (size <= around || size > bytes.size()) return std::nullopt;
  const std::string_view content = bytes.substr(0, size - 4);
  std::string keyed;
  put(keyed, key);
  if (get<std::uint32_t>(bytes, size - 4) != check_of(content, check_of(keyed))) return std::nullopt;
  block_values block;
  block.mask = get<std::uint64_t>(content, 2);
  block.values.resize(static_cast<std::size_t>(std::popcount(block.mask)) * lanes);
  if (block.values.empty() || !get_values(content.substr(10), block.values)) return std::nullopt;
  return block;
}

void page_writer::add(std::uint64_t key, const block_values& block) {
  if (block.mask == 0 || block.values.empty()) return;
  directory_.push_back({key, static_cast<std::uint32_t>(blocks_.size())});
  blocks_ += encode_block(key, block);
  header_.steps = std::max(header_.steps, static_cast<std::uint32_t>(std::bit_width(block.mask)));
}

std::string page_writer::whole() {
  std::sort(directory_.begin(), directory_.end(),
            [](const page_entry& a, const page_entry& b) { return a.key < b.key; });
  header_.series = static_cast<std::uint32_t>(directory_.size());
  header_.bytes = static_cast<std::uint32_t>(directory_.size() * page_entry_size + blocks_.size());
  std::string bytes = encode_header(header_);
  bytes.reserve(bytes.size() + header_.bytes);
  for (const page_entry& entry : directory_) {
    put(bytes, entry.key);
    put(bytes, entry.offset);
  }
  return bytes += blocks_;
}

}  // namespace busbar::storage
