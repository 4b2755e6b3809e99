// Wrong values under late replies: 64 connections to a device whose register is a function of its address, 20
// ms time-out, 5 % of the replies 1.5 to 10 time-outs late. bench_modbus [--raw DIR] [--quick]
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "actors/devices/modbus/tcp_loop.hpp"
#include "tests/support/modbus_server.hpp"

namespace busbar::bench {
namespace {

using devices::modbus::frame;
using devices::modbus::request;

constexpr int connections = 64;
constexpr std::int64_t timeout_ns = 20'000'000;
constexpr double late_share = 0.05;
constexpr std::uint16_t words = 4;

struct tally {
  std::atomic<std::uint64_t> reads{0}, wrong{0}, failed{0};
};

// One connection's reader: the next read begins when the last was answered. Callbacks come on the loop's
// thread.
struct reader {
  std::shared_ptr<devices::modbus::link> wire;
  std::mt19937 random;
  std::uint64_t left = 0;
  tally* count = nullptr;
  std::atomic<int>* running = nullptr;
  std::promise<void>* done = nullptr;
};

void next_read(const std::shared_ptr<reader>& one) {
  if (one->left == 0) {
    if (one->running->fetch_sub(1) == 1) one->done->set_value();
    return;
  }
  --one->left;
  const auto address = static_cast<std::uint16_t>(one->random() % 60'000);
  const request wanted{devices::modbus::function::read_holding, 1, address, words, {}};
  one->wire->transact(wanted, devices::modbus::priority::telemetry, std::chrono::seconds(10),
                      [one, address](const absl::StatusOr<std::vector<std::uint16_t>>& answer) {
                        if (!answer.ok()) {
                          one->count->failed.fetch_add(1);
                        } else {
                          one->count->reads.fetch_add(1);
                          for (std::uint16_t at = 0; at < words; ++at) {
                            const auto wanted_word =
                                test::register_of(static_cast<std::uint16_t>(address + at));
                            if ((*answer)[at] != wanted_word) one->count->wrong.fetch_add(1);
                          }
                        }
                        next_read(one);
                      });
}

int measure(std::uint64_t reads, const std::string& raw) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> share(0, 1);
  std::uniform_real_distribution<double> late(1.5, 10);
  test::modbus_server device([&random, &share, &late](const frame& came) {
    test::modbus_answer answer{encode(test::honest_reply(came)), 0, false};
    if (share(random) < late_share) answer.delay_ns = static_cast<std::int64_t>(late(random) * timeout_ns);
    return answer;
  });
  tally count;
  std::atomic<int> running{connections};
  std::promise<void> done;
  std::vector<std::shared_ptr<devices::modbus::link>> wires;
  const auto begin = std::chrono::steady_clock::now();
  devices::modbus::exchange_counts sum;
  {
    devices::modbus::tcp_loop loop;
    for (int number = 0; number < connections; ++number) {
      auto one = std::make_shared<reader>();
      one->wire = *loop.open(
          device.address(), {.timeout_min_ns = timeout_ns, .timeout_max_ns = timeout_ns, .read_attempts = 8});
      one->random.seed(static_cast<std::uint32_t>(number));
      one->left = reads / connections + 1;
      one->count = &count;
      one->running = &running;
      one->done = &done;
      wires.push_back(one->wire);
      next_read(one);
    }
    done.get_future().wait();
    for (const auto& wire : wires) {
      const auto counts = wire->counts();
      sum.sent += counts.sent;
      sum.timeouts += counts.timeouts;
      sum.late += counts.late;
      sum.foreign += counts.foreign;
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{:<28}{:>12}\n{:<28}{:>12}\n{:<28}{:>12}\n{:<28}{:>12}\n{:<28}{:>12.0f}\n", "requests sent",
             sum.sent, "given up after 20 ms", sum.timeouts, "late replies dropped", sum.late,
             "reads that failed", count.failed.load(), "reads a second",
             static_cast<double>(count.reads.load()) / seconds);
  if (!raw.empty()) {
    std::filesystem::create_directories(raw);
    std::ofstream(raw + "/modbus.csv")
        << "reads,wrong,failed,sent,timeouts,late,seconds\n"
        << fmt::format("{},{},{},{},{},{},{:.2f}\n", count.reads.load(), count.wrong.load(),
                       count.failed.load(), sum.sent, sum.timeouts, sum.late, seconds);
  }
  fmt::print("{{\"reads\":{},\"wrong_values\":{},\"late_replies\":{}}}\n", count.reads.load(),
             count.wrong.load(), sum.late);
  return count.wrong.load() == 0 && count.failed.load() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace busbar::bench

int main(int argc, char** argv) {
  std::uint64_t reads = 1'000'000;
  std::string raw;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick") reads = 20'000;
    if (word == "--raw" && i + 1 < argc) raw = argv[++i];
  }
  return busbar::bench::measure(reads, raw);
}
