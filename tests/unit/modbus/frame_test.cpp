#include "actors/devices/modbus/frame.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/modbus_server.hpp"

namespace busbar::devices::modbus {
namespace {

TEST(modbus_frame, a_read_looks_on_the_wire_as_the_standard_shows_it) {
  // MODBUS Application Protocol V1.1b3, section 6.3: registers 108-110 of unit 17.
  const request wanted{function::read_holding, 17, 107, 3, {}};
  EXPECT_EQ(encode(wanted, 0x1234), std::string("\x12\x34\x00\x00\x00\x06\x11\x03\x00\x6b\x00\x03", 12));
}

TEST(modbus_frame, finds_frames_however_the_stream_is_cut) {
  std::string stream;
  for (std::uint16_t id = 0; id < 50; ++id) stream += encode(request{function::read_input, 1, id, 2, {}}, id);
  for (std::size_t piece = 1; piece < 30; ++piece) {
    frame_reader reader;
    std::uint16_t seen = 0;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      while (auto came = reader.next()) EXPECT_EQ(came->transaction, seen++);
    }
    EXPECT_EQ(seen, 50);
    EXPECT_FALSE(reader.broken());
  }
}

TEST(modbus_frame, a_header_that_is_none_breaks_the_stream) {
  for (const std::string& bytes : {std::string("\0\1\0\1\0\6\1", 7), std::string("\0\1\0\0\0\1\1", 7),
                                   std::string("\0\1\0\0\0\xff\1", 7), std::string("\0\1\0\0\7\6\1", 7)}) {
    frame_reader reader;
    reader.feed(bytes);
    EXPECT_FALSE(reader.next().has_value());
    EXPECT_TRUE(reader.broken());
  }
}

TEST(modbus_frame, random_bytes_neither_crash_nor_answer) {
  std::mt19937 random(7);
  const request asked{function::read_holding, 1, 10, 2, {}};
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& one : bytes) one = static_cast<char>(random());
    frame_reader reader;
    reader.feed(bytes);
    while (auto came = reader.next()) {
      if (read_reply(asked, *came).how == relation::answers) {
        EXPECT_EQ(came->pdu.size(), 6U);
      }
      static_cast<void>(read_request(*came));
    }
  }
}

TEST(modbus_frame, what_is_encoded_is_decoded_by_the_other_side) {
  std::mt19937 random(3);
  for (int round = 0; round < 2'000; ++round) {
    request wanted;
    wanted.what = std::array{function::read_holding, function::read_input, function::write_single,
                             function::write_multiple}[random() % 4];
    wanted.unit = static_cast<std::uint8_t>(random());
    wanted.address = static_cast<std::uint16_t>(random() % 65'000);
    if (!wanted.writes()) wanted.count = static_cast<std::uint16_t>(1 + random() % most_words_read);
    if (wanted.what == function::write_single) wanted.values = {static_cast<std::uint16_t>(random())};
    if (wanted.what == function::write_multiple) wanted.values.assign(1 + random() % most_words_written, 7);
    frame_reader reader;
    reader.feed(encode(wanted, 9));
    const auto back = read_request(*reader.next());
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->address, wanted.address);
    EXPECT_EQ(back->values, wanted.values);
    EXPECT_EQ(back->count, wanted.count);
    const frame reply = test::honest_reply({9, wanted.unit, encode(wanted, 9).substr(header_bytes)});
    EXPECT_EQ(read_reply(wanted, reply).how, relation::answers);
  }
}

}  // namespace
}  // namespace busbar::devices::modbus
