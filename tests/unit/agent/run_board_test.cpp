#include <gtest/gtest.h>

#include "daemon/agent/back_off.hpp"
#include "daemon/agent/run_board.hpp"

namespace busbar::agent_client {
namespace {

using std::chrono::seconds;
using time_point = run_board::time_point;

const time_point start{seconds(1000)};

agent::Run order(const std::string& run_id, const std::string& test) {
  agent::Run run;
  run.set_run_id(run_id);
  run.set_test(test);
  run.set_probe("diagnostics");
  run.mutable_duration()->set_seconds(1);
  run.mutable_deadline()->set_seconds(10);
  run.mutable_lease()->set_seconds(5);
  return run;
}

// "start diag", "cancel", "done diag ok", "done diag: why"
std::vector<std::string> words(const run_board::steps& steps) {
  std::vector<std::string> out;
  for (const auto& step : steps) {
    if (const auto* begin = std::get_if<run_board::start_test>(&step)) {
      out.push_back("start " + begin->run.test());
    } else if (const auto* done = std::get_if<run_board::report_done>(&step)) {
      out.push_back("done " + done->done.test() + (done->done.ok() ? " ok" : ": " + done->done.error()));
    } else {
      out.push_back("cancel");
    }
  }
  return out;
}

using list = std::vector<std::string>;

TEST(run_board, runs_one_test_after_another) {
  run_board board;
  EXPECT_EQ(words(board.accept(order("r1", "diag"), start)), list{"start diag"});
  EXPECT_EQ(words(board.accept(order("r1", "burn"), start)), list{});
  EXPECT_EQ(words(board.finished(true, "", start)), (list{"done diag ok", "start burn"}));
  EXPECT_EQ(words(board.finished(false, "no luck", start)), list{"done burn: no luck"});
  EXPECT_FALSE(board.busy());
  EXPECT_FALSE(board.next_due().has_value());
}

TEST(run_board, starts_a_repeated_order_once) {
  run_board board;
  board.accept(order("r1", "diag"), start);
  EXPECT_EQ(words(board.accept(order("r1", "diag"), start)), list{});
  board.accept(order("r1", "burn"), start);
  EXPECT_EQ(words(board.accept(order("r1", "burn"), start)), list{});
  EXPECT_EQ(words(board.finished(true, "", start)), (list{"done diag ok", "start burn"}));
  EXPECT_EQ(words(board.finished(true, "", start)), list{"done burn ok"});
}

TEST(run_board, ends_a_run_whose_lease_ran_out_and_what_it_queued) {
  run_board board;
  board.accept(order("r1", "diag"), start);
  board.accept(order("r1", "burn"), start);
  EXPECT_EQ(words(board.tick(start + seconds(4))), list{});
  EXPECT_EQ(board.next_due(), start + seconds(5));
  EXPECT_EQ(words(board.tick(start + seconds(5))), (list{"done burn: the lease was not renewed", "cancel"}));
  EXPECT_TRUE(board.busy());
  EXPECT_EQ(words(board.finished(true, "", start + seconds(5))),
            list{"done diag: the lease was not renewed"});
}

TEST(run_board, lives_on_while_its_lease_is_renewed) {
  run_board board;
  board.accept(order("r1", "diag"), start);
  board.renew("r1", start + seconds(4));
  board.renew("other", start + seconds(4));
  EXPECT_EQ(words(board.tick(start + seconds(8))), list{});
  EXPECT_EQ(words(board.tick(start + seconds(9))), list{"cancel"});
  EXPECT_EQ(words(board.tick(start + seconds(11))), list{});
}

TEST(run_board, cancels_a_test_past_its_deadline_and_goes_on) {
  run_board board;
  board.accept(order("r1", "diag"), start);
  board.accept(order("r1", "burn"), start);
  board.renew("r1", start + seconds(9));
  EXPECT_EQ(words(board.tick(start + seconds(10))), list{"cancel"});
  EXPECT_EQ(words(board.finished(true, "", start + seconds(10))),
            (list{"done diag: the deadline passed", "start burn"}));
}

TEST(run_board, counts_a_deadline_from_the_start_of_the_test_itself) {
  run_board board;
  board.accept(order("r1", "diag"), start);
  board.accept(order("r1", "burn"), start);
  board.renew("r1", start + seconds(9));
  board.finished(true, "", start + seconds(9));
  board.renew("r1", start + seconds(13));
  EXPECT_EQ(words(board.tick(start + seconds(17))), list{});
}

TEST(run_board, lets_a_newer_run_supersede_an_older_one) {
  run_board board;
  board.accept(order("r1", "diag"), start);
  board.accept(order("r1", "burn"), start);
  EXPECT_EQ(words(board.accept(order("r2", "diag"), start)),
            (list{"done burn: superseded by run r2", "cancel"}));
  EXPECT_EQ(words(board.finished(false, "killed", start)),
            (list{"done diag: superseded by run r2", "start diag"}));
  ASSERT_NE(board.current(), nullptr);
  EXPECT_EQ(board.current()->run_id(), "r2");
}

TEST(run_board, cancels_by_run) {
  run_board board;
  board.accept(order("r1", "diag"), start);
  board.accept(order("r1", "burn"), start);
  EXPECT_EQ(words(board.cancel("r9", "cancelled", start)), list{});
  EXPECT_EQ(words(board.cancel("r1", "cancelled", start)), (list{"done burn: cancelled", "cancel"}));
  EXPECT_EQ(words(board.cancel("r1", "cancelled", start)), list{});
  EXPECT_EQ(words(board.finished(true, "", start)), list{"done diag: cancelled"});
}

TEST(run_board, takes_a_test_again_that_is_being_cancelled) {
  run_board board;
  board.accept(order("r1", "diag"), start);
  board.cancel("r1", "cancelled", start);
  EXPECT_EQ(words(board.accept(order("r1", "diag"), start)), list{});
  EXPECT_EQ(words(board.finished(false, "", start)), (list{"done diag: cancelled", "start diag"}));
}

TEST(run_board, refuses_an_order_that_names_nothing_and_one_too_many) {
  run_board board;
  EXPECT_EQ(words(board.accept(order("r1", ""), start)).size(), 1u);
  EXPECT_FALSE(board.busy());
  for (int i = 0; i < 65; ++i)
    EXPECT_LE(board.accept(order("r1", "t" + std::to_string(i)), start).size(), 1u);
  EXPECT_EQ(words(board.accept(order("r1", "t65"), start)),
            list{"done t65: too many tests are queued on this tray"});
}

TEST(run_board, gives_a_run_without_lease_or_deadline_an_end) {
  run_board board;
  auto run = order("r1", "diag");
  run.clear_lease();
  run.clear_deadline();
  board.accept(run, start);
  ASSERT_TRUE(board.next_due().has_value());
  EXPECT_EQ(words(board.tick(*board.next_due())), list{"cancel"});
}

TEST(back_off, doubles_to_its_limit_and_takes_off_at_most_half) {
  using std::chrono::milliseconds;
  back_off wait(milliseconds(100), milliseconds(1000), 3);
  for (const int whole : {100, 200, 400, 800, 1000, 1000}) {
    const auto next = wait.next();
    EXPECT_GE(next, milliseconds(whole / 2));
    EXPECT_LE(next, milliseconds(whole));
  }
  wait.reset();
  EXPECT_LE(wait.next(), milliseconds(100));
}

}  // namespace
}  // namespace busbar::agent_client
