#include "daemon/busbard/readings_keeper.hpp"

#include <array>
#include <chrono>
#include <utility>

namespace busbar::daemon {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

}  // namespace

std::optional<double> power_of_shelves(const core::reading_board& board, const std::vector<std::string>& shelves) {
  if (shelves.empty()) return std::nullopt;
  double sum = 0;
  for (const std::string& shelf : shelves) {
    const auto output = board.find(shelf + "/output_power");
    if (!output || output->quality != core::reading_quality::good || !output->value) return std::nullopt;
    sum += *output->value;
  }
  return sum;
}

readings_keeper::readings_keeper(keeper_needs needs) : needs_(std::move(needs)) {}

readings_keeper::~readings_keeper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void readings_keeper::start() {
  thread_ = std::thread([this] { run(); });
}

void readings_keeper::keep(std::int64_t wall_ns) {
  if (!needs_.rack.empty()) {
    const auto power = power_of_shelves(*needs_.board, needs_.shelves());
    const auto quality = power ? core::reading_quality::good : core::reading_quality::unknown;
    const std::array rack = {
        core::named_reading{needs_.rack + "/power", {power, "W", quality, "sum of the shelves' output", 0, wall_ns}}};
    needs_.board->put(rack);
  }
  if (needs_.history != nullptr) sample(wall_ns / second_ns);
}

// What is known in this second, new or not: a reading that is old turns stale, and then it is known no more.
void readings_keeper::sample(std::int64_t wall_s) {
  needs_.history->begin_second(wall_s);
  needs_.board->look(0, {}, [this](const core::reading_board::sight& seen) {
    if (seen.what.quality != core::reading_quality::good || !seen.what.value) return;
    if (seen.at >= series_.size()) series_.resize(seen.at + 1);
    auto& series = series_[seen.at];
    if (!series) series = needs_.history->series_of(seen.name);
    needs_.history->note(*series, *seen.what.value);
  });
}

void readings_keeper::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::int64_t now_ns = needs_.wall_ns();
    const std::int64_t wait_ns = second_ns - now_ns % second_ns;
    if (changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [this] { return stopping_; })) return;
    lock.unlock();
    keep(needs_.wall_ns());
    lock.lock();
  }
}

}  // namespace busbar::daemon
