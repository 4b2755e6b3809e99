// Server-sent events out of bytes as they come: pure, bounded, indifferent to where the bytes are cut. Lines
// end with LF, CR or CR LF; the lines of one event's data are joined; comments (heartbeats) are only counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace busbar::devices::redfish {

struct stream_figures {
  std::uint64_t events = 0;
  std::uint64_t comments = 0;
  std::uint64_t too_large = 0;  // events that were left out
  std::uint64_t gaps = 0;       // ids that did not follow each other
};

class event_stream_decoder {
 public:
  explicit event_stream_decoder(std::size_t largest_event = 4 * 1024 * 1024) : largest_(largest_event) {}

  // Gives the data of each event that ends in these bytes; valid within the call.
  void feed(std::string_view bytes, const std::function<void(std::string_view data)>& each);
  const stream_figures& figures() const { return figures_; }

 private:
  enum class field { undecided, data, other };
  void take(std::string_view part);  // of one line
  void end_line(const std::function<void(std::string_view data)>& each);
  void note_id(std::string_view text);

  std::size_t largest_;
  stream_figures figures_;
  std::string line_;  // of a field that is not data, or whose name is not whole yet
  std::string data_;
  field field_ = field::undecided;
  bool has_data_ = false;
  bool overflowed_ = false;
  bool after_cr_ = false;
  bool empty_line_ = true;
  std::optional<std::uint64_t> last_id_;
};

}  // namespace busbar::devices::redfish
