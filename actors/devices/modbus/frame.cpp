#include "actors/devices/modbus/frame.hpp"

#include <fmt/format.h>

namespace busbar::devices::modbus {
namespace {

constexpr std::uint8_t exception_bit = 0x80;
constexpr std::uint32_t address_space = 0x10000;

std::uint8_t byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint8_t>(bytes[at]);
}

std::uint16_t word_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint16_t>(byte_at(bytes, at) << 8 | byte_at(bytes, at + 1));
}

void put_word(std::string& bytes, std::uint16_t word) {
  bytes.push_back(static_cast<char>(word >> 8));
  bytes.push_back(static_cast<char>(word & 0xff));
}

std::vector<std::uint16_t> words_of(std::string_view bytes) {
  std::vector<std::uint16_t> words;
  words.reserve(bytes.size() / 2);
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) words.push_back(word_at(bytes, at));
  return words;
}

bool echoes(const request& asked, std::string_view pdu) {
  if (pdu.size() != 5 || word_at(pdu, 1) != asked.address) return false;
  const std::uint16_t second = word_at(pdu, 3);
  return second == (asked.what == function::write_single ? asked.values[0] : asked.values.size());
}

}  // namespace

absl::Status check(const request& wanted) {
  const std::size_t words = wanted.writes() ? wanted.values.size() : wanted.count;
  std::size_t most = most_words_read;
  if (wanted.what == function::write_single) most = 1;
  if (wanted.what == function::write_multiple) most = most_words_written;
  if (words == 0 || words > most) {
    return absl::InvalidArgumentError(fmt::format("function {} with {} words: 1 to {} fit a frame",
                                                  static_cast<int>(wanted.what), words, most));
  }
  if (wanted.address + words > address_space) {
    return absl::InvalidArgumentError(
        fmt::format("{} words from register {}: the last register is 65535", words, wanted.address));
  }
  return absl::OkStatus();
}

std::string encode(const frame& reply) {
  std::string bytes;
  bytes.reserve(header_bytes + reply.pdu.size());
  put_word(bytes, reply.transaction);
  put_word(bytes, 0);
  put_word(bytes, static_cast<std::uint16_t>(reply.pdu.size() + 1));  // the unit counts, too
  bytes.push_back(static_cast<char>(reply.unit));
  bytes += reply.pdu;
  return bytes;
}

std::string encode(const request& wanted, std::uint16_t transaction) {
  frame out{transaction, wanted.unit, {}};
  out.pdu.push_back(static_cast<char>(wanted.what));
  put_word(out.pdu, wanted.address);
  if (wanted.what == function::write_single) {
    put_word(out.pdu, wanted.values[0]);
  } else if (wanted.what == function::write_multiple) {
    put_word(out.pdu, static_cast<std::uint16_t>(wanted.values.size()));
    out.pdu.push_back(static_cast<char>(wanted.values.size() * 2));
    for (const std::uint16_t word : wanted.values) put_word(out.pdu, word);
  } else {
    put_word(out.pdu, wanted.count);
  }
  return encode(out);
}

void frame_reader::feed(std::string_view bytes) {
  if (broken_) return;
  if (at_ > 0 && at_ == bytes_.size()) {
    bytes_.clear();
    at_ = 0;
  }
  bytes_ += bytes;
}

std::optional<frame> frame_reader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(at_);
  if (broken_ || rest.size() < header_bytes) return std::nullopt;
  const std::uint16_t length = word_at(rest, 4);
  if (word_at(rest, 2) != 0 || length < 2 || length > most_pdu_bytes + 1) {
    broken_ = true;
    return std::nullopt;
  }
  const std::size_t whole = header_bytes - 1 + length;
  if (rest.size() < whole) return std::nullopt;
  frame found{word_at(rest, 0), byte_at(rest, 6), std::string(rest.substr(header_bytes, length - 1))};
  at_ += whole;
  return found;
}

reading read_reply(const request& asked, const frame& came) {
  const std::string_view pdu = came.pdu;
  if (came.unit != asked.unit || pdu.empty()) return {};
  const auto wanted = static_cast<std::uint8_t>(asked.what);
  if (byte_at(pdu, 0) == (wanted | exception_bit)) {
    if (pdu.size() != 2) return {};
    return {relation::exception, {}, byte_at(pdu, 1)};
  }
  if (byte_at(pdu, 0) != wanted) return {};
  if (asked.writes()) return echoes(asked, pdu) ? reading{relation::answers, {}, 0} : reading{};
  const std::size_t bytes = asked.count * std::size_t{2};
  if (pdu.size() != bytes + 2 || byte_at(pdu, 1) != bytes) return {};
  return {relation::answers, words_of(pdu.substr(2)), 0};
}

std::string exception_text(std::uint8_t code) {
  switch (code) {
    case 1:
      return "illegal function (1)";
    case 2:
      return "illegal data address (2)";
    case 3:
      return "illegal data value (3)";
    case 4:
      return "device failure (4)";
    case 5:
      return "acknowledged, not done yet (5)";
    case 6:
      return "device busy (6)";
    case 10:
      return "gateway path unavailable (10)";
    case 11:
      return "gateway target silent (11)";
    default:
      return fmt::format("exception {}", code);
  }
}

bool exception_passes(std::uint8_t code) {
  return code == 5 || code == 6 || code == 10 || code == 11;
}

std::optional<request> read_request(const frame& came) {
  const std::string_view pdu = came.pdu;
  if (pdu.size() < 5) return std::nullopt;
  request asked;
  asked.unit = came.unit;
  asked.address = word_at(pdu, 1);
  const std::uint16_t second = word_at(pdu, 3);
  const std::uint8_t code = byte_at(pdu, 0);
  if (code == 3 || code == 4) {
    if (pdu.size() != 5) return std::nullopt;
    asked.what = static_cast<function>(code);
    asked.count = second;
  } else if (code == 6) {
    if (pdu.size() != 5) return std::nullopt;
    asked.what = function::write_single;
    asked.values = {second};
  } else if (code == 16) {
    if (pdu.size() < 6 || byte_at(pdu, 5) != second * 2 || pdu.size() != 6 + second * std::size_t{2})
      return std::nullopt;
    asked.what = function::write_multiple;
    asked.values = words_of(pdu.substr(6));
  } else {
    return std::nullopt;
  }
  return check(asked).ok() ? std::optional<request>(std::move(asked)) : std::nullopt;
}

}  // namespace busbar::devices::modbus
