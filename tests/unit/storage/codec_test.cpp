#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "storage/key_codec.hpp"

namespace busbar::storage {
namespace {

std::vector<std::uint64_t> numbers() {
  std::vector<std::uint64_t> some = {0, 1, 127, 128, 255, 256, 65535, 65536, std::numeric_limits<std::uint64_t>::max()};
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) some.push_back(random() >> (random() % 64));
  return some;
}

TEST(key_codec, numbers_survive_and_sort_as_numbers) {
  auto some = numbers();
  std::sort(some.begin(), some.end());
  for (std::size_t i = 0; i < some.size(); ++i) {
    EXPECT_EQ(decode_u64(encode_u64(some[i])), some[i]);
    if (i > 0 && some[i - 1] < some[i]) {
      EXPECT_LT(encode_u64(some[i - 1]), encode_u64(some[i]));
    }
  }
  EXPECT_FALSE(decode_u64("short").has_value());
}

TEST(key_codec, event_keys_sort_by_revision_then_index) {
  auto some = numbers();
  std::sort(some.begin(), some.end());
  std::string before;
  for (const std::uint64_t revision : some) {
    for (const std::uint32_t index : {0U, 1U, 255U, 256U, 0xffffffffU}) {
      const std::string key = event_key(revision, index);
      EXPECT_EQ(parse_event_key(key), std::pair(revision, index));
      EXPECT_LE(before, key);
      before = index == 0xffffffffU ? event_key(revision, 0) : key;
    }
  }
  EXPECT_FALSE(parse_event_key("12345678901").has_value());
}

TEST(key_codec, state_keys_survive_and_stay_within_their_kind) {
  for (const core::object_kind kind : {core::object_kind::node, core::object_kind::rack, core::object_kind::endpoint,
                                       core::object_kind::operation, core::object_kind::record, core::object_kind::valve,
                                       core::object_kind::pdu, core::object_kind::cdu}) {
    const auto [first, last] = state_range(kind);
    for (const std::string name : {"r01", "r01/c07", "\xff\xff", "operations/12"}) {
      const std::string key = state_key(kind, name);
      EXPECT_EQ(parse_state_key(key), std::pair(kind, name));
      EXPECT_LE(first, key);
      EXPECT_LT(key, last);
    }
  }
  EXPECT_FALSE(parse_state_key("").has_value());
  EXPECT_FALSE(parse_state_key(std::string(1, '\x01')).has_value());
  EXPECT_FALSE(parse_state_key("\x63name").has_value());
}

TEST(key_codec, a_state_value_keeps_revision_and_bytes) {
  const std::string object("\0object", 7);
  const std::string value = state_value(0x0102030405060708, object);
  const auto parsed = parse_state_value(value);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->revision, 0x0102030405060708U);
  EXPECT_EQ(parsed->object, object);
}

TEST(key_codec, refuses_a_value_cut_short_or_of_another_format) {
  const std::string value = state_value(7, "");
  EXPECT_TRUE(parse_state_value(value).has_value());
  EXPECT_FALSE(parse_state_value(value.substr(0, value.size() - 1)).has_value());
  std::string other = value;
  other[0] = 2;
  EXPECT_FALSE(parse_state_value(other).has_value());
  EXPECT_FALSE(parse_state_value("").has_value());
}

TEST(key_codec, request_keys_lie_in_their_range_and_the_rest_of_meta_outside) {
  const auto [first, last] = request_range();
  for (const std::string id : {"", "a", "\xff\xff\xff"}) {
    EXPECT_LE(first, request_key(id));
    EXPECT_LT(request_key(id), last);
  }
  for (const std::string& key : {identity_key(), head_key(), schema_key()}) EXPECT_TRUE(key < first || key >= last);
}

}  // namespace
}  // namespace busbar::storage
