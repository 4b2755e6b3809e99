// Modbus TCP on the wire: the 7-byte MBAP header and the four functions Busbar uses. No I/O, no clock.
//
// Source: MODBUS Messaging on TCP/IP Implementation Guide V1.0b (header: transaction, protocol 0, length,
// unit) and MODBUS Application Protocol V1.1b3 (functions 3, 4, 6, 16; at most 125 words read, 123 written).
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace busbar::devices::modbus {

enum class function : std::uint8_t {
  read_holding = 3,
  read_input = 4,
  write_single = 6,
  write_multiple = 16
};

inline constexpr std::uint16_t most_words_read = 125;
inline constexpr std::uint16_t most_words_written = 123;
inline constexpr std::size_t header_bytes = 7;
inline constexpr std::size_t most_pdu_bytes = 253;

// What is asked of one unit. count: words to read; a write carries its words in values instead.
struct request {
  function what = function::read_holding;
  std::uint8_t unit = 1;
  std::uint16_t address = 0;  // as it goes over the wire, from 0
  std::uint16_t count = 0;
  std::vector<std::uint16_t> values;

  bool writes() const { return what == function::write_single || what == function::write_multiple; }
};

// INVALID_ARGUMENT with the bound when a request cannot be put on the wire.
absl::Status check(const request& wanted);
// Wants a request that passed check().
std::string encode(const request& wanted, std::uint16_t transaction);

// A whole frame. pdu begins with the function code.
struct frame {
  std::uint16_t transaction = 0;
  std::uint8_t unit = 0;
  std::string pdu;
};
std::string encode(const frame& reply);

// Cuts a byte stream into frames. A header that is no MBAP header breaks the stream for good: where the next
// frame begins cannot be known, so the connection has to be closed.
class frame_reader {
 public:
  void feed(std::string_view bytes);
  std::optional<frame> next();
  bool broken() const { return broken_; }

 private:
  std::string bytes_;
  std::size_t at_ = 0;  // where the next frame begins
  bool broken_ = false;
};

// What a frame says to a request whose transaction it carries. A frame of another unit, function or length
// answers nothing (foreign): it is dropped, and the request goes on waiting.
enum class relation { answers, exception, foreign };
struct reading {
  relation how = relation::foreign;
  std::vector<std::uint16_t> words;  // of a read that was answered
  std::uint8_t exception = 0;
};
reading read_reply(const request& asked, const frame& came);

// "illegal data address (2)"; unknown codes keep their number.
std::string exception_text(std::uint8_t code);
// Busy (6), acknowledged (5) and a silent gateway target (11) may pass; the rest will not.
bool exception_passes(std::uint8_t code);

// The device's side, for simulators and tests: nullopt when the PDU is none of the four functions or
// malformed (answer exception 1 or 3).
std::optional<request> read_request(const frame& came);

}  // namespace busbar::devices::modbus
