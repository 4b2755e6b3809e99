#include "storage/history.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <system_error>
#include <utility>

namespace busbar::storage {
namespace {

constexpr std::int64_t minute_s = 60;
constexpr std::int64_t minutes_page_s = 30 * minute_s;
constexpr std::int64_t seconds_file_s = 600;
constexpr std::int64_t minutes_file_s = 86'400;
constexpr std::int64_t gap_steps = 2;  // a sample more or less is no gap

std::int64_t floor_to(std::int64_t value, std::int64_t step) {
  const std::int64_t rest = value % step;
  return value - (rest < 0 ? rest + step : rest);
}

// The folder is there before the files look into it; if it is not, they say so.
const history_options& with_folder(const history_options& options) {
  std::error_code failed;
  std::filesystem::create_directories(options.directory, failed);
  if (!failed) {
    std::filesystem::permissions(options.directory, std::filesystem::perms::owner_all, failed);
  }
  if (failed && options.say) options.say("cannot use " + options.directory + ": " + failed.message());
  return options;
}

}  // namespace

void history::span::add(double least_of, double mean, double most_of, std::uint32_t samples) {
  least = count == 0 ? least_of : std::min(least, least_of);
  most = count == 0 ? most_of : std::max(most, most_of);
  sum = (count == 0 ? 0 : sum) + mean * samples;
  count += samples;
}

history::history(history_options options, std::int64_t now_s)
    : options_(std::move(options)),
      seconds_({with_folder(options_).directory, "s", seconds_file_s, options_.seconds_kept_s,
                options_.seconds_bytes, options_.least_free, options_.say}),
      minutes_({options_.directory, "m", minutes_file_s, options_.minutes_kept_s, options_.minutes_bytes,
                options_.least_free, options_.say}) {
  take_over(now_s);
  seconds_.trim(now_s);
  minutes_.trim(now_s);
}

std::shared_ptr<history> history::open(history_options options, std::int64_t now_s) {
  return std::shared_ptr<history>(new history(std::move(options), now_s));
}

history::~history() {
  const std::lock_guard lock(guard_);
  flush_seconds();  // minutes are made of them again by the next life
}

history::state& history::state_of(std::uint64_t key) {
  const auto [found, fresh] = by_key_.try_emplace(key, static_cast<series>(states_.size()));
  if (fresh) states_.emplace_back().key = key;
  return states_[found->second];
}

history::series history::series_of(std::string_view name) {
  const std::lock_guard lock(guard_);
  const std::uint64_t key = history_key(name);
  state_of(key);
  return by_key_.at(key);
}

// Minutes of the page that was not full yet stand nowhere but in their seconds.
void history::take_over(std::int64_t now_s) {
  const std::int64_t page = floor_to(now_s, minutes_page_s);
  std::int64_t from = page;
  minutes_.each_page(page, page + minutes_page_s, [&from](const history_files::page_at& at) {
    from = std::max(from, at.header.start_s + static_cast<std::int64_t>(at.header.steps) * minute_s);
  });
  // Where the last life ended in an earlier page, that page is not written either.
  std::int64_t written = page - options_.seconds_kept_s;
  minutes_.each_page(written, page, [&written](const history_files::page_at& at) {
    written = std::max(written, at.header.start_s + static_cast<std::int64_t>(at.header.steps) * minute_s);
  });
  const std::int64_t begin = std::min(from, written);
  seconds_.each_page(begin, now_s + 1, [this, begin](const history_files::page_at& at) {
    if (at.header.start_s < begin) return;
    use_minutes_page(at.header.start_s);
    history_files::each_series(at, [this, &at](std::uint64_t key, const block_values& block) {
      fold(state_of(key), at.header.start_s, block.mask, block.values.data(), 0);
    });
  });
}

void history::use_minutes_page(std::int64_t start_s) {
  const std::int64_t page = floor_to(start_s, minutes_page_s);
  if (minutes_start_ == page) return;
  if (minutes_start_.has_value()) flush_minutes();
  minutes_start_ = page;
}

// stride 0: the values of the mask's bits, one after the other; 1: each in its own place.
void history::fold(state& of, std::int64_t at_s, std::uint64_t mask, const double* values,
                   std::size_t stride) {
  span minute;
  std::size_t next = 0;
  for (std::size_t i = 0; i < seconds_a_page; ++i) {
    if ((mask >> i & 1) == 0) continue;
    const double value = values[stride == 0 ? next++ : i];
    minute.add(value, value, value, 1);
  }
  if (minute.count == 0) return;
  const auto slot = static_cast<std::size_t>((at_s - *minutes_start_) / minute_s);
  if (slot >= minutes_a_page) return;
  if ((of.minutes_mask >> slot & 1) == 0) of.minutes[slot] = {};
  of.minutes_mask |= std::uint64_t{1} << slot;
  of.minutes[slot].add(minute.least, minute.sum / minute.count, minute.most, minute.count);
}

void history::flush_seconds() {
  if (!seconds_start_.has_value()) return;
  use_minutes_page(*seconds_start_);
  const page_header header{*seconds_start_, 1, 0, 1, 0, 0};
  page_writer page(header);
  block_values block;
  bool any = false;
  for (state& of : states_) {
    if (of.seconds_mask == 0) continue;
    any = true;
    block.mask = of.seconds_mask;
    block.values.clear();
    for (std::size_t i = 0; i < seconds_a_page; ++i) {
      if ((of.seconds_mask >> i & 1) != 0) block.values.push_back(of.seconds[i]);
    }
    page.add(of.key, block);
    fold(of, *seconds_start_, of.seconds_mask, of.seconds.data(), 1);
    of.seconds_mask = 0;
  }
  if (any) seconds_.append(header, page.whole());
  seconds_.trim(now_s_);
  seconds_start_.reset();
}

void history::flush_minutes() {
  const page_header header{*minutes_start_, minute_s, 0, 3, 0, 0};
  page_writer page(header);
  block_values block;
  bool any = false;
  for (state& of : states_) {
    if (of.minutes_mask == 0) continue;
    any = true;
    block.mask = of.minutes_mask;
    block.values.clear();
    for (std::size_t i = 0; i < minutes_a_page; ++i) {
      if ((of.minutes_mask >> i & 1) == 0) continue;
      const span& one = of.minutes[i];
      block.values.insert(block.values.end(), {one.least, one.sum / one.count, one.most});
    }
    page.add(of.key, block);
    of.minutes_mask = 0;
  }
  if (any) minutes_.append(header, page.whole());
  minutes_.trim(now_s_);
}

void history::begin_second(std::int64_t wall_s) {
  const std::lock_guard lock(guard_);
  const std::int64_t page = floor_to(wall_s, static_cast<std::int64_t>(seconds_a_page));
  if (seconds_start_ != page) {
    flush_seconds();
    seconds_start_ = page;
  }
  now_s_ = wall_s;
  index_ = static_cast<std::size_t>(wall_s - page);
}

void history::note(series of, double value) {
  const std::lock_guard lock(guard_);
  if (of >= states_.size() || !seconds_start_.has_value()) return;
  states_[of].seconds[index_] = value;
  states_[of].seconds_mask |= std::uint64_t{1} << index_;
}

void history::collect_memory(std::uint64_t key, std::int64_t from_s, std::int64_t to_s, bool minutes,
                             std::vector<history_moment>& into) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  const state& of = states_[found->second];
  if (minutes && minutes_start_.has_value()) {
    for (std::size_t i = 0; i < minutes_a_page; ++i) {
      const std::int64_t at = *minutes_start_ + static_cast<std::int64_t>(i) * minute_s;
      if ((of.minutes_mask >> i & 1) == 0 || at < from_s || at >= to_s) continue;
      const span& one = of.minutes[i];
      into.push_back({at, minute_s, one.least, one.sum / one.count, one.most});
    }
  }
  if (!seconds_start_.has_value()) return;
  for (std::size_t i = 0; i < seconds_a_page; ++i) {
    const std::int64_t at = *seconds_start_ + static_cast<std::int64_t>(i);
    if ((of.seconds_mask >> i & 1) == 0 || at < from_s || at >= to_s) continue;
    into.push_back({at, 1, of.seconds[i], of.seconds[i], of.seconds[i]});
  }
}

std::vector<history_moment> history::collect(std::uint64_t key, std::int64_t from_s, std::int64_t to_s,
                                             bool by_minutes) {
  std::vector<history_moment> found;
  // Minutes up to where the seconds begin; where minutes are all that is asked for, up to now.
  const std::int64_t seconds_from = seconds_.oldest_s().value_or(seconds_start_.value_or(to_s));
  const std::int64_t minutes_to = by_minutes ? to_s : std::min(to_s, seconds_from);
  const auto take = [&found, key, from_s](const history_files::page_at& at, std::int64_t until_s) {
    const auto block = history_files::find(at, key);
    if (!block) return;
    std::size_t next = 0;
    for (std::size_t i = 0; i < most_page_steps; ++i) {
      if ((block->mask >> i & 1) == 0) continue;
      const std::int64_t when = at.header.start_s + static_cast<std::int64_t>(i) * at.header.step_s;
      const double* const lanes = &block->values[next];
      next += at.header.lanes;
      if (when < from_s || when >= until_s) continue;
      const bool three = at.header.lanes == 3;
      found.push_back({when, at.header.step_s, lanes[0], lanes[three ? 1 : 0], lanes[three ? 2 : 0]});
    }
  };
  if (from_s < minutes_to) {
    minutes_.each_page(from_s, minutes_to,
                       [&take, minutes_to](const history_files::page_at& at) { take(at, minutes_to); });
  }
  if (!by_minutes) {
    seconds_.each_page(from_s, to_s, [&take, to_s](const history_files::page_at& at) { take(at, to_s); });
  }
  collect_memory(key, from_s, to_s, by_minutes, found);
  std::stable_sort(found.begin(), found.end(),
                   [](const history_moment& a, const history_moment& b) { return a.wall_s < b.wall_s; });
  return found;
}

namespace {

history_answer every_sample(const std::vector<history_moment>& found, std::size_t limit) {
  history_answer answer;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const history_moment& one = found[i];
    if (i + 1 < found.size() && found[i + 1].wall_s == one.wall_s) continue;  // written anew: the last counts
    if (answer.samples.size() + 2 > limit) {
      answer.more = true;
      break;
    }
    history_sample sample{one.wall_s, one.value, std::nullopt, std::nullopt};
    if (one.step_s > 1) {
      sample.least = one.least;
      sample.most = one.most;
    }
    answer.samples.push_back(sample);
    if (i + 1 == found.size()) break;
    const std::int64_t step = std::max(one.step_s, found[i + 1].step_s);
    if (found[i + 1].wall_s - one.wall_s <= gap_steps * step) continue;
    answer.samples.push_back({one.wall_s + one.step_s, std::nullopt, std::nullopt, std::nullopt});
  }
  return answer;
}

}  // namespace

history_answer history::read(std::string_view name, std::int64_t from_s, std::int64_t to_s,
                             std::int64_t step_s, std::size_t limit) {
  history_answer answer;
  if (from_s >= to_s || limit == 0 || step_s < 0) return answer;
  std::vector<history_moment> found;
  {
    const std::lock_guard lock(guard_);
    found = collect(history_key(name), from_s, to_s, step_s >= minute_s);
  }
  if (step_s == 0) return every_sample(found, limit);
  std::size_t next = 0;
  for (std::int64_t at = from_s; at < to_s; at += step_s) {
    if (answer.samples.size() == limit) {
      answer.more = true;
      break;
    }
    span step;
    for (; next < found.size() && found[next].wall_s < at + step_s; ++next) {
      step.add(found[next].least, found[next].value, found[next].most, 1);
    }
    history_sample sample{at, std::nullopt, std::nullopt, std::nullopt};
    if (step.count != 0) sample = {at, step.sum / step.count, step.least, step.most};
    answer.samples.push_back(sample);
  }
  return answer;
}

std::uint64_t history::bytes() const {
  const std::lock_guard lock(guard_);
  return seconds_.bytes() + minutes_.bytes();
}

}  // namespace busbar::storage
