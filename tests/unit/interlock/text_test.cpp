// No text makes a heartbeat unreadable, whatever a person typed and wherever it was cut.
#include "daemon/interlock/text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "busbar/interlock/interlock.pb.h"
#include "daemon/interlock/latch_file.hpp"
#include "tests/unit/interlock/logic_rig.hpp"

namespace busbar::interlock {
namespace {

const std::vector<std::string> characters{"x", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x92\xA7"};
const std::vector<std::string> no_characters{
    "\x80",         "\xC3",         "\xC0\xAF",         "\xE2\x82",         "\xE0\x80\x80", "\xED\xA0\x80",
    "\xF0\x9F\x92", "\xF5\x80\x80", "\xF4\x90\x80\x80", "\xF0\x80\x80\x80", "\xFF"};

std::string repeated(const std::string& what, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += what;
  return text;
}

bool survives(const google::protobuf::Message& message) {
  std::unique_ptr<google::protobuf::Message> read(message.New());
  return read->ParseFromString(message.SerializeAsString());
}

TEST(text, is_cut_between_characters_at_every_length) {
  for (const std::string& character : characters) {
    const std::string whole = repeated(character, 12);
    for (std::size_t most = 0; most <= whole.size() + 1; ++most) {
      const std::string_view part = cut_text(whole, most);
      EXPECT_LE(part.size(), most);
      EXPECT_TRUE(is_utf8(part)) << character << ' ' << most;
      EXPECT_LT(std::min(most, whole.size()) - part.size(), character.size()) << "no more than needed";
    }
  }
}

TEST(text, of_bytes_that_are_no_text_is_cut_as_well) {
  EXPECT_EQ(cut_text(repeated("\x80", 300), 127).size(), 127U);
}

TEST(text, with_bytes_that_are_no_character_is_mended_and_else_left_alone) {
  for (const std::string& bad : no_characters) {
    EXPECT_FALSE(is_utf8("a" + bad + "b"));
    const std::string mended = mend_text("a" + bad + "b");
    EXPECT_TRUE(is_utf8(mended));
    EXPECT_EQ(mended.front(), 'a');
    EXPECT_EQ(mended.back(), 'b');
  }
  for (const std::string& good : characters) EXPECT_EQ(mend_text(good), good);
}

TEST(text, in_a_line_of_the_latch_file_reads_back_valid_at_every_length) {
  for (const std::string& character : characters) {
    for (std::size_t lead = 0; lead < 5; ++lead) {
      Latch line;
      line.set_number(1);
      line.set_kind(Latch::RESET);
      const std::string text = std::string(lead, 'a') + repeated(character, 200);
      line.set_detail(text);
      line.set_device(text);
      line.set_detector(text);
      line.set_principal(text);
      const auto read = decode_latch(encode_latch(line));
      ASSERT_TRUE(read.ok() && read->has_value());
      EXPECT_TRUE(survives(**read)) << character << ' ' << lead;
      EXPECT_GE((*read)->detail().size(), 124U);
    }
  }
}

TEST(text, that_an_older_version_cut_within_a_character_is_mended_on_reading) {
  Latch line;
  line.set_number(1);
  line.set_kind(Latch::RESET);
  for (const std::string& bad : no_characters) {
    line.set_detail("looked" + bad);
    const auto read = decode_latch(encode_latch(line));
    ASSERT_TRUE(read.ok() && read->has_value());
    EXPECT_TRUE(survives(**read));
    EXPECT_TRUE(is_utf8((*read)->detail()));
  }
}

TEST(text, of_every_field_of_a_heartbeat_is_mended) {
  Status status;
  status.set_instance("r01\xFF");
  status.add_devices()->add_detectors()->set_detail("State \xC3");
  status.add_latches()->set_detector("\xE2\x82");
  status.add_open_trips()->add_waits_for("r01/c01 \xED\xA0\x80");
  Frame frame;
  *frame.mutable_status() = status;
  mend_texts(&frame);
  ASSERT_TRUE(survives(frame));
  const Status& sent = frame.status();
  for (const std::string& one : {sent.instance(), sent.devices(0).detectors(0).detail(),
                                 sent.latches(0).detector(), sent.open_trips(0).waits_for(0)})
    EXPECT_TRUE(is_utf8(one)) << one;
}

class long_reasons : public test::bench {};

TEST_F(long_reasons, of_a_trip_are_whole_characters_in_file_and_status) {
  for (const std::string& character : characters) {
    interlock_ = {};
    interlock_.rack = "r01";
    arm();
    const std::string reason = "a" + repeated(character, 126 / character.size());
    ASSERT_TRUE(answer_to(trip_requested{1, "r01/c01", reason, "uid 0", true}).ok());
    for (const Latch& line : file_) EXPECT_TRUE(is_utf8(line.detail())) << line.detail();
    Status status;
    fill_status(interlock_, now_ms_, &status);
    for (const Latch& line : status.latches()) EXPECT_TRUE(is_utf8(line.detail()));
  }
}

}  // namespace
}  // namespace busbar::interlock
