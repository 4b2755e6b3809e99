#include "actors/devices/modbus/register_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace busbar::devices::modbus {
namespace {

// Words between two points that are cheaper to read along than to ask for apart.
constexpr std::uint32_t worthwhile_gap = 8;

std::uint32_t raw_of(const map_point& point, const std::uint16_t* words) {
  if (point.words() == 1) return words[0];
  std::uint32_t high = words[0];
  std::uint32_t low = words[1];
  if (point.order == word_order::cdab || point.order == word_order::dcba) std::swap(high, low);
  if (point.order == word_order::badc || point.order == word_order::dcba) {
    high = (high >> 8 | high << 8) & 0xffff;
    low = (low >> 8 | low << 8) & 0xffff;
  }
  return high << 16 | low;
}

std::vector<std::uint16_t> words_of(const map_point& point, std::uint32_t raw) {
  if (point.words() == 1) return {static_cast<std::uint16_t>(raw)};
  std::uint32_t high = raw >> 16;
  std::uint32_t low = raw & 0xffff;
  if (point.order == word_order::badc || point.order == word_order::dcba) {
    high = (high >> 8 | high << 8) & 0xffff;
    low = (low >> 8 | low << 8) & 0xffff;
  }
  if (point.order == word_order::cdab || point.order == word_order::dcba) std::swap(high, low);
  return {static_cast<std::uint16_t>(high), static_cast<std::uint16_t>(low)};
}

double number_of(value_type type, std::uint32_t raw) {
  if (type == value_type::s16) return static_cast<std::int16_t>(raw);
  if (type == value_type::s32) return static_cast<std::int32_t>(raw);
  if (type == value_type::f32) return std::bit_cast<float>(raw);
  return raw;
}

void take_number(const map_point& from, std::uint32_t raw, point& to) {
  const double value = from.offset + from.scale * number_of(from.type, raw);
  const bool absent = std::find(from.absent.begin(), from.absent.end(), raw) != from.absent.end();
  const bool within = std::isfinite(value) &&
                      value >= from.min.value_or(-std::numeric_limits<double>::infinity()) &&
                      value <= from.max.value_or(std::numeric_limits<double>::infinity());
  if (absent || !within) {
    to.raw = fmt::format("{:#x}", raw);
    return;
  }
  to.value = value;
  to.quality = point_quality::good;
}

struct bounds {
  double low, high;
};

// The numbers that a register's type can hold, before scale and offset.
bounds holds(value_type type) {
  switch (type) {
    case value_type::u16:
      return {0, 65535};
    case value_type::s16:
      return {-32768, 32767};
    case value_type::u32:
      return {0, 4294967295.0};
    case value_type::s32:
      return {-2147483648.0, 2147483647.0};
    case value_type::f32:
      return {-3.4e38, 3.4e38};
    case value_type::flags:
      return {0, 65535};
  }
  return {0, 0};
}

}  // namespace

std::uint16_t map_point::words() const {
  return type == value_type::u32 || type == value_type::s32 || type == value_type::f32 ? 2 : 1;
}

const map_point* register_map::find(std::string_view wanted) const {
  const auto found = std::find_if(points.begin(), points.end(),
                                  [wanted](const map_point& one) { return one.name == wanted; });
  return found == points.end() ? nullptr : &*found;
}

std::vector<request> plan_reads(const register_map& map, poll_class polled) {
  std::vector<const map_point*> wanted;
  for (const map_point& one : map.points) {
    if (one.polled == polled) wanted.push_back(&one);
  }
  std::sort(wanted.begin(), wanted.end(), [](const map_point* left, const map_point* right) {
    return std::pair(left->table, left->address) < std::pair(right->table, right->address);
  });
  std::vector<request> reads;
  for (const map_point* one : wanted) {
    const function what = one->table == register_table::input ? function::read_input : function::read_holding;
    const std::uint32_t end = one->address + std::uint32_t{one->words()};
    if (!reads.empty() && reads.back().what == what) {
      request& last = reads.back();
      const std::uint32_t last_end = last.address + std::uint32_t{last.count};
      if (one->address <= last_end + worthwhile_gap && end - last.address <= most_words_read) {
        last.count = static_cast<std::uint16_t>(std::max(last_end, end) - last.address);
        continue;
      }
    }
    reads.push_back({what, map.unit, one->address, one->words(), {}});
  }
  return reads;
}

point_batch decode(const register_map& map, const request& asked, const std::vector<std::uint16_t>& words,
                   std::int64_t received_ns) {
  point_batch batch;
  const register_table table =
      asked.what == function::read_input ? register_table::input : register_table::holding;
  for (const map_point& one : map.points) {
    if (one.table != table || one.address < asked.address) continue;
    const std::size_t at = one.address - std::size_t{asked.address};
    if (at + one.words() > words.size()) continue;
    const std::uint32_t raw = raw_of(one, &words[at]);
    point reading;
    reading.unit = one.unit;
    reading.received_ns = received_ns;
    reading.source = fmt::format("{}/{}", map.name, one.address);
    if (one.type == value_type::flags) {
      for (const auto& [bit, name] : one.bits) {
        reading.value = raw >> bit & 1;
        reading.quality = point_quality::good;
        batch.points.push_back({fmt::format("{}.{}", one.name, name), reading});
      }
      continue;
    }
    take_number(one, raw, reading);
    if (reading.quality != point_quality::good) ++batch.bad;
    batch.points.push_back({one.name, std::move(reading)});
  }
  return batch;
}

absl::StatusOr<request> encode_write(const register_map& map, std::string_view point, double value) {
  const map_point* const found = map.find(point);
  if (found == nullptr || !found->writable) {
    return absl::InvalidArgumentError(fmt::format("{}: {} {}", map.name, std::string(point),
                                                  found == nullptr ? "is not in the map" : "is read-only"));
  }
  const bounds type = holds(found->type);
  const double raw = (value - found->offset) / found->scale;
  const double low = found->min.value_or(found->offset + found->scale * type.low);
  const double high = found->max.value_or(found->offset + found->scale * type.high);
  if (!std::isfinite(value) || value < std::min(low, high) || value > std::max(low, high) ||
      raw < type.low - 0.5 || raw > type.high + 0.5) {
    return absl::InvalidArgumentError(fmt::format("{}: {} = {} {}: allowed is {} to {}", map.name,
                                                  found->name, value, found->unit, low, high));
  }
  std::uint32_t bits = 0;
  if (found->type == value_type::f32) {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(raw));
  } else {
    bits = static_cast<std::uint32_t>(static_cast<std::int64_t>(std::llround(raw)));
  }
  request out;
  out.unit = map.unit;
  out.address = found->address;
  out.values = words_of(*found, bits);
  out.what = out.values.size() == 1 ? function::write_single : function::write_multiple;
  return out;
}

bool reads_back(const map_point& point, double written, double read) {
  const double step = point.type == value_type::f32 ? std::abs(written) * 1e-6 + 1e-9 : std::abs(point.scale);
  return std::abs(written - read) <= step / 2 + 1e-9;
}

}  // namespace busbar::devices::modbus
