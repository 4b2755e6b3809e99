// Once a second: what the rack adds up to (its power), and a sample of every known reading into the history. A thread of its
// own, at the beginning of each wall-clock second; it touches no state and no device.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/core/reading_board.hpp"
#include "storage/history.hpp"

namespace busbar::daemon {

// What all these shelves put out together; nullopt while it is not known of each of them, or there are none.
std::optional<double> power_of_shelves(const core::reading_board& board, const std::vector<std::string>& shelves);

struct keeper_needs {
  std::string rack;  // "r01"; empty: no rack, only the history is kept
  std::shared_ptr<core::reading_board> board;
  std::shared_ptr<storage::history> history;           // may be null
  std::function<std::vector<std::string>()> shelves;   // the rack's declared ones, as "r01/p01"; keeper's thread
  std::function<std::int64_t()> wall_ns;               // keeper's thread
};

class readings_keeper {
 public:
  explicit readings_keeper(keeper_needs needs);
  ~readings_keeper();
  readings_keeper(const readings_keeper&) = delete;
  readings_keeper& operator=(const readings_keeper&) = delete;

  void start();
  // One second's work, at this wall time.
  void keep(std::int64_t wall_ns);

 private:
  void run();
  void sample(std::int64_t wall_s);

  const keeper_needs needs_;
  std::vector<std::optional<storage::history::series>> series_;  // by the board's place
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace busbar::daemon
