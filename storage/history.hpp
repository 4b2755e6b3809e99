// What readings were: a sample a second for some hours, least, mean and most of each minute for a month. A
// second store, apart from the journal, never synced: losing it loses pictures, never truth. So nothing here
// fails anyone: what cannot be written or read is dropped and said, and the rest goes on.
//
// Plain files of pages (history_page.hpp) in a folder of their own, bounded in age and bytes. Thread-safe;
// one writer.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "storage/history_files.hpp"

namespace busbar::storage {

struct history_options {
  std::string directory;
  std::int64_t seconds_kept_s = 3 * 3600;
  std::int64_t minutes_kept_s = 30 * 86'400;
  std::uint64_t seconds_bytes = 512ULL << 20;
  std::uint64_t minutes_bytes = 1'536ULL << 20;
  std::uint64_t least_free = 512ULL << 20;           // bytes of the disk that are left to others
  std::function<void(const std::string& what)> say;  // of what was dropped, once a text; may be null
};

struct history_sample {
  std::int64_t wall_s = 0;      // of the sample, or where its step begins
  std::optional<double> value;  // mean of the step; absent: not known then
  std::optional<double> least;  // absent where a sample is one
  std::optional<double> most;
};

struct history_answer {
  std::vector<history_sample> samples;
  bool more = false;  // cut at the limit
};

struct history_moment {  // inside: one sample or one minute, as it is kept
  std::int64_t wall_s = 0;
  std::int64_t step_s = 1;
  double least = 0;
  double value = 0;
  double most = 0;
};

class history {
 public:
  // What an earlier life left is taken over. now_s: wall time.
  static std::shared_ptr<history> open(history_options options, std::int64_t now_s);
  ~history();  // writes what is not written yet

  using series = std::uint32_t;
  series series_of(std::string_view name);
  // The second that the next notes are of. Seconds go up; where the clock was set back they are written anew.
  void begin_second(std::int64_t wall_s);
  void note(series of, double value);  // what is not noted is not known then

  // From from_s on, before to_s. step_s 0: every sample that is there, and one without a value where a gap
  // begins; else one for each step, without a value where nothing is known.
  history_answer read(std::string_view name, std::int64_t from_s, std::int64_t to_s, std::int64_t step_s,
                      std::size_t limit);
  std::uint64_t bytes() const;

 private:
  static constexpr std::size_t seconds_a_page = 60;
  static constexpr std::size_t minutes_a_page = 30;
  struct span {  // least, sum and most of some samples
    double least = 0;
    double sum = 0;
    double most = 0;
    std::uint32_t count = 0;
    void add(double least_of, double mean, double most_of, std::uint32_t samples);
  };
  struct state {
    std::uint64_t key = 0;
    std::uint64_t seconds_mask = 0;
    std::uint64_t minutes_mask = 0;
    std::array<double, seconds_a_page> seconds{};
    std::array<span, minutes_a_page> minutes{};
  };

  history(history_options options, std::int64_t now_s);
  state& state_of(std::uint64_t key);
  void take_over(std::int64_t now_s);
  void flush_seconds();
  void flush_minutes();
  void fold(state& of, std::int64_t minute_s, std::uint64_t mask, const double* values, std::size_t stride);
  void use_minutes_page(std::int64_t start_s);
  std::vector<history_moment> collect(std::uint64_t key, std::int64_t from_s, std::int64_t to_s,
                                      bool by_minutes);
  void collect_memory(std::uint64_t key, std::int64_t from_s, std::int64_t to_s, bool minutes,
                      std::vector<history_moment>& into) const;

  const history_options options_;
  mutable std::mutex guard_;
  history_files seconds_;
  history_files minutes_;
  std::vector<state> states_;
  std::unordered_map<std::uint64_t, series> by_key_;
  std::optional<std::int64_t> seconds_start_;
  std::optional<std::int64_t> minutes_start_;
  std::int64_t now_s_ = 0;
  std::size_t index_ = 0;  // of the second in its page
};

}  // namespace busbar::storage
