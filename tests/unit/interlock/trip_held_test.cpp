// What a trip holds off stays off until a person resets it; and what is no leak in spite of two wet readings.
#include "tests/unit/interlock/trip_rig.hpp"

namespace busbar::interlock::test {
namespace {

class trip_held : public trip_rig {
 protected:
  void trip_of_one_tray() {
    wet("r01/c01");
    off("r01/c01");
    ASSERT_TRUE(of_.open.begin()->second.closed);
    sent_.clear();
    reads_.clear();
  }
};

TEST_F(trip_held, asks_every_5_s_whether_a_tray_that_is_off_is_off_still) {
  trip_of_one_tray();
  run_ms(4'900);
  EXPECT_EQ(reads_of("r01/c01"), 0);
  run_ms(10'200);
  EXPECT_EQ(reads_of("r01/c01"), 3);
  EXPECT_EQ(reads_of("r01/c02"), 0);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(trip_held, turns_a_tray_off_again_that_a_late_request_turned_on) {
  trip_of_one_tray();
  alarms_.clear();
  feed(power_read{"r01/c01", power_seen::on});
  ASSERT_EQ(commanded(), std::vector<std::string>{"r01/c01"});
  EXPECT_EQ(alarms_.size(), 1U);
  run_ms(1'000);
  EXPECT_EQ(count("r01/c01"), 2) << "repeated like any command";
  off("r01/c01");
  sent_.clear();
  run_ms(4'000);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(trip_held, leaves_a_tray_alone_that_no_trip_holds) {
  trip_of_one_tray();
  feed(power_read{"r01/c02", power_seen::on});
  feed(latch_reset{"r01/c01"});
  feed(power_read{"r01/c01", power_seen::on});
  run_ms(20'000);
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(reads_of("r01/c01"), 0);
}

TEST_F(trip_held, holds_a_tray_off_over_a_restart_too) {
  trip_of_one_tray();
  const std::vector<Latch> file = lines_;
  of_ = {};
  feed(plan_changed{plan_of(trip_record())});
  feed(trips_restored{file, wall_ns_});
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(reads_of("r01/c01"), 1);
  feed(power_read{"r01/c01", power_seen::on});
  EXPECT_EQ(commanded(), std::vector<std::string>{"r01/c01"});
}

TEST_F(trip_held, commands_trays_in_the_order_of_the_record_when_several_trips_are_carried_on) {
  wet("r01/c03");
  wet("cdu01", "r01_rope");
  const std::vector<Latch> file = lines_;
  of_ = {};
  sent_.clear();
  feed(plan_changed{plan_of(trip_record())});
  feed(trips_restored{file, wall_ns_});
  auto trays = commanded();
  trays.resize(4);  // the valves follow
  EXPECT_EQ(trays, (std::vector<std::string>{"r01/c01", "r01/c02", "r01/c03", "r01/s01"}));
}

TEST_F(trip_held, takes_flaps_on_both_sides_of_a_lost_bmc_for_no_leak) {
  use_confirm_ms(1'500);
  wet("r01/c01");
  run_ms(400);
  feed(reach_changed{"r01/c01", false});
  run_ms(1'500);
  feed(reach_changed{"r01/c01", true});
  wet("r01/c01");
  EXPECT_TRUE(sent_.empty());
  run_ms(1'500);
  wet("r01/c01");
  EXPECT_EQ(commanded(), std::vector<std::string>{"r01/c01"})
      << "wet for as long as it takes, after the loss";
}

}  // namespace
}  // namespace busbar::interlock::test
