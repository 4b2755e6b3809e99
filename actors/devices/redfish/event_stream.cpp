#include "actors/devices/redfish/event_stream.hpp"

#include <algorithm>
#include <charconv>

namespace busbar::devices::redfish {
namespace {

constexpr std::string_view data_field = "data:";
constexpr std::size_t longest_line = 4096;  // of what is not data

std::string_view without_space(std::string_view text) {
  if (text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

// Each sign by itself: a search for either looks at every byte twice, and a report is one line of 60 KiB.
std::size_t line_end(std::string_view bytes) {
  const std::size_t lf = bytes.find('\n');
  return std::min(lf, bytes.substr(0, lf).find('\r'));
}

}  // namespace

void event_stream_decoder::take(std::string_view part) {
  if (part.empty()) return;
  empty_line_ = false;
  if (field_ == field::undecided) {
    // The name of the field first, letter by letter: it may come in pieces.
    while (!part.empty() && field_ == field::undecided) {
      line_ += part.front();
      part.remove_prefix(1);
      if (!data_field.starts_with(line_)) field_ = field::other;
      if (line_ != data_field) continue;
      field_ = field::data;
      if (has_data_) data_ += '\n';
      has_data_ = true;
      line_.clear();
    }
  }
  if (field_ == field::other) {
    line_.append(part.substr(0, longest_line - std::min(longest_line, line_.size())));
    return;
  }
  if (data_.size() + part.size() > largest_) {
    overflowed_ = true;
    data_.clear();
  }
  if (!overflowed_) data_.append(part);
}

void event_stream_decoder::note_id(std::string_view text) {
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size()) return;  // ids may be words: no order in them
  if (last_id_.has_value() && id != *last_id_ + 1) ++figures_.gaps;
  last_id_ = id;
}

void event_stream_decoder::end_line(const std::function<void(std::string_view data)>& each) {
  if (empty_line_) {
    if (overflowed_) {
      ++figures_.too_large;
    } else if (has_data_) {
      ++figures_.events;
      each(without_space(data_));
    }
    data_.clear();
    has_data_ = overflowed_ = false;
  } else if (line_.starts_with(':')) {
    ++figures_.comments;
  } else if (line_.starts_with("id:")) {
    note_id(without_space(std::string_view(line_).substr(3)));
  }
  line_.clear();
  field_ = field::undecided;
  empty_line_ = true;
}

void event_stream_decoder::feed(std::string_view bytes,
                                const std::function<void(std::string_view data)>& each) {
  while (!bytes.empty()) {
    if (after_cr_) {  // LF after CR is no line of its own
      after_cr_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const std::size_t end = line_end(bytes);
    take(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(each);
  }
}

}  // namespace busbar::devices::redfish
