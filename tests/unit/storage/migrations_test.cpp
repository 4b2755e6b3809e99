#include <gtest/gtest.h>

#include <array>

#include "actors/core/errors.hpp"
#include "storage/key_codec.hpp"
#include "storage/memory_store.hpp"
#include "storage/migrations.hpp"

namespace busbar::storage {
namespace {

absl::Status add_letter(const store& before, store_write& write, char letter) {
  const auto text = before.get(family::meta, "letters");
  if (!text.ok()) return text.status();
  write.put(family::meta, "letters", text->value_or("") + letter);
  return absl::OkStatus();
}

const std::array<migration, 2> steps = {
    migration{2, "adds b", [](const store& before, store_write& write) { return add_letter(before, write, 'b'); }},
    migration{3, "adds c", [](const store& before, store_write& write) { return add_letter(before, write, 'c'); }}};

std::uint64_t version_of(const store& tested) { return *decode_u64(**tested.get(family::meta, schema_key())); }

TEST(migrations, an_empty_store_gets_the_newest_number_and_no_step) {
  memory_store tested;
  ASSERT_TRUE(migrate(tested, steps, 3).ok());
  EXPECT_EQ(version_of(tested), 3U);
  EXPECT_FALSE(tested.get(family::meta, "letters")->has_value());
}

TEST(migrations, an_old_store_is_carried_forward_step_by_step_once) {
  memory_store tested;
  ASSERT_TRUE(migrate(tested, {}, 1).ok());
  ASSERT_TRUE(migrate(tested, steps, 3).ok());
  ASSERT_TRUE(migrate(tested, steps, 3).ok());
  EXPECT_EQ(version_of(tested), 3U);
  EXPECT_EQ(tested.get(family::meta, "letters")->value(), "bc");
}

TEST(migrations, a_newer_store_is_refused_and_not_touched) {
  memory_store tested;
  ASSERT_TRUE(migrate(tested, {}, 4).ok());
  const std::uint64_t syncs = tested.syncs();
  EXPECT_EQ(core::fault_of(migrate(tested, steps, 3)), core::fault::STORE_NEWER);
  EXPECT_EQ(tested.syncs(), syncs);
}

TEST(migrations, a_gap_in_the_steps_stops_before_it) {
  memory_store tested;
  ASSERT_TRUE(migrate(tested, {}, 1).ok());
  EXPECT_FALSE(migrate(tested, std::span(steps).subspan(1), 3).ok());
  EXPECT_EQ(version_of(tested), 1U);
}

TEST(migrations, a_number_that_cannot_be_read_is_damage) {
  memory_store tested;
  store_write write;
  write.put(family::meta, schema_key(), "x");
  ASSERT_TRUE(tested.write(write).ok());
  EXPECT_EQ(core::fault_of(migrate(tested, steps, 3)), core::fault::STORE_DAMAGED);
}

}  // namespace
}  // namespace busbar::storage
