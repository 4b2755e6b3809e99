// busbar-interlock as a program: real TLS, real files, kill -9.
#include "tests/integration/interlock/program_rig.hpp"

namespace busbar::interlock {
namespace {

using namespace std::chrono_literals;
using test::ask_as_operator;
using test::https_tray;
using test::interlock_program;
using test::process;
using test::reset_of;
using test::watched_client;
using ::testing::HasSubstr;

TEST_F(interlock_program, arms_opens_the_gate_and_says_what_a_trip_can_do) {
  https_tray tray;
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) { return view.status != nullptr; }));
  EXPECT_FALSE((*client).gate("r01/c01").allowed);
  ASSERT_TRUE(client.arm(record_of(1, {tray.device("r01/c01")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true)) << client.row("r01/c01").reason();
  const auto status = (*client).last()->status;
  EXPECT_EQ(status->trips(), Status::TRAYS);
  EXPECT_THAT(status->trips_text(),
              HasSubstr("trips: trays off; not with this record: shelves cut, valves closed"));
  EXPECT_TRUE(status->armed_rack());
  EXPECT_EQ(status->realtime() && status->memory_locked(), status->realtime_detail().empty());
  EXPECT_EQ(running->end(SIGTERM), 0);
  EXPECT_FALSE(std::filesystem::exists(socket("interlock")));
}

TEST_F(interlock_program, keeps_a_latch_through_kill_9_until_a_person_resets_it_dry_and_with_a_reason) {
  https_tray tray;
  auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {tray.device("r01/c01")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true)) << client.row("r01/c01").reason();
  tray.make_wet("1_Manifold");
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) {
    return !view.status->latches().empty() && view.status->latches(0).durable();
  }));
  EXPECT_EQ(running->end(SIGKILL), -SIGKILL);
  tray.make_dry("1_Manifold");
  const std::int64_t before = (*client).last()->status->started_wall_ns();
  running = start();

  // The sealed record arms it again: nobody hands one over.
  ASSERT_TRUE(client.until([&client, before](const rack::interlock_view& view) {
    return view.status->started_wall_ns() != before && client.row("r01/c01").armed() &&
           client.row("r01/c01").latched();
  }));
  EXPECT_EQ((*client).gate("r01/c01").fault, "POWER_LEAK_LATCHED");
  const auto lines = client.latches(0);
  ASSERT_GE(lines.size(), 2U);
  EXPECT_EQ(lines[0].number(), 1U);
  EXPECT_EQ(lines[0].kind(), interlock::Latch::LEAK_SEEN);
  EXPECT_EQ(lines[0].detector(), "1_Manifold");
  EXPECT_EQ(lines[1].kind(), interlock::Latch::TRIP_OPENED);

  if (::geteuid() == 0) {
    const Answer without = ask_as_operator(socket("operator"), reset_of("r01/c01", ""));
    EXPECT_EQ(without.code(), static_cast<int>(absl::StatusCode::kInvalidArgument)) << without.message();
    EXPECT_FALSE((*client).gate("r01/c01").allowed);
    const Answer with = reset_when_dry("r01/c01");
    EXPECT_EQ(with.code(), 0) << with.message();
    EXPECT_TRUE(client.until_gate("r01/c01", true)) << client.row("r01/c01").reason();
    const auto since = client.latches(1);
    ASSERT_FALSE(since.empty());
    EXPECT_EQ(since.back().kind(), interlock::Latch::RESET);
    EXPECT_EQ(since.back().principal(), "uid 0");
  } else {
    // The user who runs both is busbard's: the operator's socket does not let it in.
    EXPECT_EQ(ask_as_operator(socket("operator"), reset_of("r01/c01", "hose replaced")).code(), -1);
  }

  bool left_session_deleted = false;
  for (const http_request& request : tray.asked()) {
    left_session_deleted = left_session_deleted || request.method == "DELETE";
    const bool own_session = request.path.rfind("/redfish/v1/SessionService/Sessions", 0) == 0;
    const bool force_off = request.path == test::reset_path && request.body == R"({"ResetType":"ForceOff"})";
    EXPECT_TRUE(request.method == "GET" || own_session || force_off) << request.method << ' ' << request.path;
  }
  EXPECT_TRUE(left_session_deleted);
}

TEST_F(interlock_program, turns_off_the_tray_that_leaks_reads_it_off_and_leaves_the_other_alone) {
  https_tray wet;
  https_tray dry;
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {wet.device("r01/c01"), dry.device("r01/c02")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true));
  ASSERT_TRUE(client.until_gate("r01/c02", true));
  wet.make_wet("0_ColdPlate");
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) {
    return view.status->open_trips_size() == 1 && view.status->open_trips(0).closed();
  }));
  const auto posts = [](const https_tray& tray) {
    const auto asked = tray.asked();
    return std::count_if(asked.begin(), asked.end(),
                         [](const http_request& each) { return each.path == test::reset_path; });
  };
  EXPECT_EQ(posts(wet), 1);
  EXPECT_EQ(posts(dry), 0);
  EXPECT_TRUE((*client).gate("r01/c02").allowed);
}

TEST_F(interlock_program, sends_a_command_by_the_lane_of_the_polls_while_its_own_waits_for_an_answer) {
  https_tray tray;
  const auto running = start();
  watched_client client(socket("interlock"));
  ArmingRecord record = record_of(1, {tray.device("r01/c01")});
  record.mutable_limits()->set_request_timeout_ms(30'000);
  ASSERT_TRUE(client.arm(record).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true));
  tray.hold(test::system_path);  // the read-back that follows the first ForceOff
  tray.make_wet("0_ColdPlate");
  const auto commands = [&tray] {
    const auto asked = tray.asked();
    return std::count_if(asked.begin(), asked.end(),
                         [](const http_request& each) { return each.path == test::reset_path; });
  };
  ASSERT_TRUE(client.until([&commands](const rack::interlock_view&) { return commands() >= 2; }));
  EXPECT_EQ(tray.connections(), 2U) << "the read-back was given up, or the command had to open a connection";
  tray.hold("");
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) {
    return view.status->open_trips_size() == 1 && view.status->open_trips(0).closed();
  }));
}

TEST_F(interlock_program, carries_a_trip_on_that_a_kill_9_interrupted) {
  https_tray tray;
  auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {tray.device("r01/c01")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true));
  tray.ignore_off(true);
  tray.make_wet("0_ColdPlate");
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) {
    return view.status->open_trips_size() == 1 && !view.status->open_trips(0).closed();
  }));
  running->end(SIGKILL);
  tray.ignore_off(false);
  running = start();
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) {
    return view.status->open_trips_size() == 1 && view.status->open_trips(0).closed();
  }));
}

TEST_F(interlock_program, refuses_a_wet_reset) {
  if (::geteuid() != 0) GTEST_SKIP() << "the operator's socket needs root here";
  https_tray tray;
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {tray.device("r01/c01")})).ok());
  tray.make_wet("0_Manifold");
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) { return !view.status->latches().empty(); }));
  const Answer answer = ask_as_operator(socket("operator"), reset_of("r01/c01", "looks fine to me"));
  EXPECT_EQ(answer.code(), static_cast<int>(absl::StatusCode::kFailedPrecondition)) << answer.message();
}

TEST_F(interlock_program, sends_no_password_to_a_device_with_another_certificate) {
  https_tray tray;
  const auto running = start();
  watched_client client(socket("interlock"));
  ArmedDevice device = tray.device("r01/c01");
  device.set_pin_sha256(std::string(64, '0'));
  ASSERT_TRUE(client.arm(record_of(1, {device})).ok());
  ASSERT_TRUE(client.until([&client](const rack::interlock_view&) {
    return client.row("r01/c01").reason().find("CERTIFICATE_CHANGED") != std::string::npos;
  }));
  EXPECT_TRUE(tray.asked().empty());
  EXPECT_FALSE((*client).gate("r01/c01").allowed);
}

TEST_F(interlock_program, a_device_that_hangs_loses_its_own_gate_and_delays_no_other) {
  https_tray good;
  https_tray bad;
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {good.device("r01/c01"), bad.device("r01/c02")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true));
  ASSERT_TRUE(client.until_gate("r01/c02", true));
  bad.stall(true);
  ASSERT_TRUE(client.until_gate("r01/c02", false));
  EXPECT_TRUE(client.until_gate("r01/c01", true));
  bad.stall(false);
  EXPECT_TRUE(client.until_gate("r01/c02", true)) << client.row("r01/c02").reason();
}

TEST_F(interlock_program, refuses_roll_back_and_removal_over_busbards_socket) {
  https_tray tray;
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(5, {tray.device("r01/c01")})).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(client.arm(record_of(4, {tray.device("r01/c01")}))));
  EXPECT_TRUE(absl::IsFailedPrecondition(client.arm(record_of(6, {}))));
  EXPECT_TRUE(client.arm(record_of(5, {tray.device("r01/c01")})).ok());
  EXPECT_TRUE(client.arm(record_of(6, {tray.device("r01/c01"), tray.device("r01/c02")})).ok());
}

TEST_F(interlock_program, shows_a_blind_window_and_no_open_gate_in_it) {
  https_tray tray;
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {tray.device("r01/c01")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true));
  EXPECT_TRUE(absl::IsInvalidArgument(client.blind("r01/c01", 11min)));
  ASSERT_TRUE(client.blind("r01/c01", 5min).ok());
  ASSERT_TRUE(client.until([&client](const rack::interlock_view&) { return client.row("r01/c01").blind(); }));
  EXPECT_FALSE((*client).gate("r01/c01").allowed);
  ASSERT_TRUE(client.blind("r01/c01", 0ms).ok());
  EXPECT_TRUE(client.until_gate("r01/c01", true));
}

TEST_F(interlock_program, is_told_dead_by_its_client_once_it_is_not_heard) {
  auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.until(
      [](const rack::interlock_view& view) { return view.life == rack::interlock_life::alive; }));
  running->end(SIGKILL);
  EXPECT_TRUE(
      client.until([](const rack::interlock_view& view) { return view.life == rack::interlock_life::dead; }));
  running = start();
  EXPECT_TRUE(client.until(
      [](const rack::interlock_view& view) { return view.life == rack::interlock_life::alive; }));
}

TEST_F(interlock_program, runs_once_on_a_state_folder) {
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) { return view.status != nullptr; }));
  EXPECT_EQ(start()->wait(), 5);
  EXPECT_EQ(running->end(SIGTERM), 0);
}

TEST_F(interlock_program, is_not_pushed_from_its_sockets_by_one_with_another_state_folder) {
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) { return view.status != nullptr; }));
  const std::int64_t first = (*client).last()->status->started_wall_ns();
  EXPECT_EQ(start("/other")->wait(), 5);
  // The socket itself says that it lives, also where its lock was removed.
  std::filesystem::remove(folder_ + "/run/r01/interlock.lock");
  EXPECT_EQ(start("/other")->wait(), 5);
  const auto heard = [&client] { return (*client).last()->status->sequence(); };
  const std::uint64_t before = heard();
  EXPECT_TRUE(client.until([before](const rack::interlock_view& view) {
    return view.life == rack::interlock_life::alive && view.status->sequence() > before;
  }));
  watched_client newcomer(socket("interlock"));
  ASSERT_TRUE(newcomer.until([](const rack::interlock_view& view) { return view.status != nullptr; }));
  EXPECT_EQ((*newcomer).last()->status->started_wall_ns(), first);
  EXPECT_EQ(running->end(SIGTERM), 0);
}

TEST_F(interlock_program, leaves_alone_what_is_no_socket) {
  std::filesystem::create_directories(folder_ + "/run/r01");
  const int file = ::open(socket("interlock").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  ::close(file);
  EXPECT_EQ(start()->wait(), 5);
  EXPECT_TRUE(std::filesystem::is_regular_file(socket("interlock")));
}

// The latch file after a latch is exchanged for nothing, an empty one, or the one before the latch.
TEST_F(interlock_program, a_latch_file_that_is_lost_or_put_back_opens_no_gate_until_a_person_has_looked) {
  if (::geteuid() != 0) GTEST_SKIP() << "the operator's socket needs root here";
  https_tray tray;
  const std::string file = folder_ + "/state/r01/interlock/latches.bin";
  auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {tray.device("r01/c01")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true));
  std::uint64_t seen = 0;
  for (const bool removed : {true, false}) {
    std::filesystem::copy_file(file, folder_ + "/older", std::filesystem::copy_options::overwrite_existing);
    Request stop;
    stop.mutable_trip()->set_scope("r01");
    stop.mutable_trip()->set_reason("a" + std::string(60, 'b') + "\xC3\xA9\xC3\xA9");
    ASSERT_EQ(ask_as_operator(socket("operator"), stop).code(), 0);
    ASSERT_TRUE(client.until([&seen](const rack::interlock_view& view) {
      return view.status->open_trips_size() == 1 && view.status->open_trips(0).closed() &&
             view.status->last_record_number() >= seen + 3;  // opened, off, closed
    }));
    seen = (*client).last()->status->last_record_number();
    running->end(SIGKILL);
    if (removed) {
      std::filesystem::remove(file);
    } else {
      std::filesystem::copy_file(folder_ + "/older", file, std::filesystem::copy_options::overwrite_existing);
    }
    const std::int64_t before = (*client).last()->status->started_wall_ns();
    running = start();
    ASSERT_TRUE(client.until(
        [before](const rack::interlock_view& view) { return view.status->started_wall_ns() != before; }));
    const Status found = *(*client).last()->status;
    EXPECT_LT(found.last_record_number(), seen);
    EXPECT_EQ(found.latch_file_ok(), !removed)
        << "a file put back is not told from a good one, but by busbard";
    client.latches(seen);  // as busbard asks, with the number that it has seen
    ASSERT_TRUE(client.until([seen](const rack::interlock_view& view) {
      return !view.status->latch_file_ok() && view.status->last_record_number() > seen;
    }));
    EXPECT_FALSE((*client).gate("r01/c01").allowed);
    const std::int64_t told = (*client).last()->status->started_wall_ns();
    running->end(SIGKILL);
    running = start();
    ASSERT_TRUE(client.until([told, &client](const rack::interlock_view& view) {
      return view.status->started_wall_ns() != told && client.row("r01/c01").armed();
    }));
    EXPECT_FALSE((*client).last()->status->latch_file_ok()) << "it stays so without busbard";
    const Answer reset = reset_when_dry("*");
    EXPECT_EQ(reset.code(), 0) << reset.message();
    EXPECT_TRUE(client.until_gate("r01/c01", true)) << client.row("r01/c01").reason();
    seen = (*client).last()->status->last_record_number();
  }
}

TEST_F(interlock_program, is_readable_after_a_reason_of_any_length_in_any_script) {
  if (::geteuid() != 0) GTEST_SKIP() << "the operator's socket needs root here";
  https_tray tray;
  auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {tray.device("r01/c01")})).ok());
  Request stop;
  stop.mutable_trip()->set_scope("r01/c01");
  std::string reason = "a";
  for (int i = 0; i < 63; ++i) reason += "\xC3\xA9";
  stop.mutable_trip()->set_reason(reason);
  ASSERT_EQ(ask_as_operator(socket("operator"), stop).code(), 0);
  running->end(SIGKILL);
  const std::int64_t before = (*client).last()->status->started_wall_ns();
  running = start();
  EXPECT_TRUE(client.until([before](const rack::interlock_view& view) {
    return view.status->started_wall_ns() != before && view.status->open_trips_size() == 1;
  }));
}

TEST_F(interlock_program, does_not_start_without_a_key) {
  std::filesystem::remove(folder_ + "/key");
  EXPECT_EQ(start()->wait(), 1);
  EXPECT_EQ(process({INTERLOCK_PROGRAM, "--instance", "r01"}).wait(), 2);
  EXPECT_EQ(process({INTERLOCK_PROGRAM, "key", "new", folder_ + "/key"}).wait(), 0);
  EXPECT_EQ(process({INTERLOCK_PROGRAM, "key", "new", folder_ + "/key"}).wait(), 5);
}

}  // namespace
}  // namespace busbar::interlock
