// The driver over real sockets against a device that is late, silent, gone or lying.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>

#include "actors/devices/modbus/map_device.hpp"
#include "actors/devices/modbus/tcp_loop.hpp"
#include "tests/support/modbus_server.hpp"

namespace busbar::devices::modbus {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<std::uint16_t>> ask(link& wire, request wanted,
                                               std::chrono::milliseconds deadline = 5s) {
  std::promise<absl::StatusOr<std::vector<std::uint16_t>>> promise;
  auto answer = promise.get_future();
  wire.transact(
      std::move(wanted), priority::command, deadline,
      [&promise](absl::StatusOr<std::vector<std::uint16_t>> got) { promise.set_value(std::move(got)); });
  return answer.get();
}

request read_of(std::uint16_t address) {
  return {function::read_holding, 1, address, 1, {}};
}

test::modbus_answer honestly(const frame& came) {
  return {encode(test::honest_reply(came)), 0, false};
}

TEST(modbus_link, reads_what_the_device_holds) {
  test::modbus_server device(honestly);
  tcp_loop loop;
  const auto wire = *loop.open(device.address());
  for (std::uint16_t address = 0; address < 200; ++address) {
    const auto words = ask(*wire, read_of(address));
    ASSERT_TRUE(words.ok()) << words.status();
    EXPECT_EQ(words->front(), test::register_of(address));
  }
}

TEST(modbus_link, late_replies_cost_time_and_never_a_wrong_value) {
  std::atomic<int> asked{0};
  test::modbus_server device([&asked](const frame& came) {
    const int number = asked++;
    return test::modbus_answer{encode(test::honest_reply(came)), number % 3 == 0 ? 35'000'000 : 0, false};
  });
  tcp_loop loop;
  const auto wire =
      *loop.open(device.address(), {.timeout_min_ns = 20'000'000, .timeout_max_ns = 20'000'000});
  for (std::uint16_t address = 0; address < 60; ++address) {
    const auto words = ask(*wire, read_of(address));
    ASSERT_TRUE(words.ok()) << words.status();
    EXPECT_EQ(words->front(), test::register_of(address));
  }
  EXPECT_GT(wire->counts().timeouts, 0U);
}

TEST(modbus_link, a_device_that_hangs_up_is_dialled_again) {
  std::atomic<int> asked{0};
  test::modbus_server device([&asked](const frame& came) {
    return asked++ == 0 ? test::modbus_answer{std::nullopt, 0, true} : honestly(came);
  });
  tcp_loop loop;
  const auto wire = *loop.open(device.address());
  const auto words = ask(*wire, read_of(3));
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_EQ(words->front(), test::register_of(3));
}

TEST(modbus_link, nobody_at_the_address_is_said_with_the_address) {
  tcp_loop loop;
  const auto wire = *loop.open("127.0.0.1:1");
  const auto words = ask(*wire, read_of(3), 300ms);
  ASSERT_FALSE(words.ok());
  EXPECT_THAT(std::string(words.status().message()), HasSubstr("127.0.0.1:1"));
}

TEST(modbus_link, refuses_what_is_no_address) {
  tcp_loop loop;
  for (const char* wrong :
       {"", "10.0.0.7", "10.0.0.7:", "10.0.0.7:0", "10.0.0.7:70000", "cdu1:502", "10.0.0.7:5x"}) {
    EXPECT_FALSE(loop.open(wrong).ok()) << wrong;
  }
}

TEST(modbus_link, what_is_open_when_the_loop_ends_is_answered) {
  test::modbus_server device([](const frame&) { return test::modbus_answer{}; });
  std::shared_ptr<link> wire;
  std::promise<absl::Status> promise;
  {
    tcp_loop loop;
    wire = *loop.open(device.address());
    wire->transact(read_of(1), priority::telemetry, 60s,
                   [&promise](const absl::StatusOr<std::vector<std::uint16_t>>& got) {
                     promise.set_value(got.status());
                   });
  }
  EXPECT_EQ(promise.get_future().get().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(ask(*wire, read_of(1)).status().code(), absl::StatusCode::kCancelled);
}

// Registers that can be written, behind a device that may say yes and do nothing.
struct holding_device {
  std::map<std::uint16_t, std::uint16_t> registers;
  bool obeys = true;
  test::modbus_answer operator()(const frame& came) {
    const auto asked = read_request(came);
    if (asked->writes()) {
      if (obeys) registers[asked->address] = asked->values[0];
      return honestly(came);
    }
    frame reply{came.transaction, came.unit, {came.pdu[0], static_cast<char>(asked->count * 2)}};
    for (std::uint16_t at = 0; at < asked->count; ++at) {
      const std::uint16_t word = registers[static_cast<std::uint16_t>(asked->address + at)];
      reply.pdu.push_back(static_cast<char>(word >> 8));
      reply.pdu.push_back(static_cast<char>(word));
    }
    return {encode(reply), 0, false};
  }
};

absl::Status write(map_device& device, const std::string& point, double value) {
  std::promise<absl::Status> promise;
  device.write(point, value, 5s, [&promise](absl::Status got) { promise.set_value(std::move(got)); });
  return promise.get_future().get();
}

std::shared_ptr<map_device> rpu_at(tcp_loop& loop, const std::string& address) {
  return std::make_shared<map_device>(*loop.open(address),
                                      *parse_register_map(*shipped_map("orv3_rpu"), "orv3_rpu"),
                                      [] { return std::int64_t{7}; });
}

TEST(modbus_device, a_write_is_done_when_it_reads_back) {
  test::modbus_server server{holding_device{}};
  tcp_loop loop;
  const auto device = rpu_at(loop, server.address());
  EXPECT_TRUE(write(*device, "outlet_target", 37.5).ok());
}

TEST(modbus_device, an_accepted_write_that_changed_nothing_is_a_failure_with_both_values) {
  test::modbus_server server{holding_device{{{37889, 300}}, false}};
  tcp_loop loop;
  const auto device = rpu_at(loop, server.address());
  const absl::Status status = write(*device, "outlet_target", 37.5);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("set to 37.5 C and reads 30"));
}

TEST(modbus_device, polls_a_class_into_points) {
  test::modbus_server server{holding_device{{{36864, 1234}, {37378, 1 << 8}, {36886, 200}}, true}};
  tcp_loop loop;
  const auto device = rpu_at(loop, server.address());
  std::promise<absl::StatusOr<point_batch>> promise;
  device->read(poll_class::fast, 5s,
               [&promise](absl::StatusOr<point_batch> got) { promise.set_value(std::move(got)); });
  const auto batch = promise.get_future().get();
  ASSERT_TRUE(batch.ok()) << batch.status();
  point_table table;
  table.apply(*batch);
  EXPECT_DOUBLE_EQ(*table.find("supply_flow")->value, 123.4);
  EXPECT_EQ(*table.find("leak_alarm.pan")->value, 1);
  EXPECT_EQ(*table.find("leak_alarm.floor")->value, 0);
  EXPECT_EQ(table.find("reservoir_level")->value, std::nullopt);  // 200 % is no level
  EXPECT_EQ(table.find("reservoir_level")->quality, point_quality::bad);
}

}  // namespace
}  // namespace busbar::devices::modbus
