// Frames of the interlock's sockets: a 4-byte big-endian length, then one protobuf message. Shared by both
// ends.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace busbar::interlock {

// A record of 27 devices takes about 8 KiB, a heartbeat about as much. A longer frame is a broken or hostile
// peer.
inline constexpr std::size_t frame_max = 1U << 20U;

inline std::string encode_frame(const google::protobuf::MessageLite& message) {
  const std::string body = message.SerializeAsString();
  const auto size = static_cast<std::uint32_t>(body.size());
  std::string frame;
  frame.reserve(body.size() + 4);
  for (int shift = 24; shift >= 0; shift -= 8) frame.push_back(static_cast<char>((size >> shift) & 0xFFU));
  return frame + body;
}

// Cuts a byte stream into bodies. Holds at most one frame and what one read brought.
class frame_reader {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }

  // The next whole body, if there is one. After broken() the connection is to be closed.
  std::optional<std::string> next() {
    if (broken_ || buffer_.size() < 4) return std::nullopt;
    std::uint32_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = (size << 8U) | static_cast<unsigned char>(buffer_[i]);
    if (size > frame_max) {
      broken_ = true;
      buffer_.clear();
      return std::nullopt;
    }
    if (buffer_.size() < 4 + std::size_t{size}) return std::nullopt;
    std::string body = buffer_.substr(4, size);
    buffer_.erase(0, 4 + std::size_t{size});
    return body;
  }

  bool broken() const { return broken_; }

 private:
  std::string buffer_;
  bool broken_ = false;
};

}  // namespace busbar::interlock
