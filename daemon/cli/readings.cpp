#include "daemon/cli/readings.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <thread>

#include "actors/manifest/names.hpp"
#include "daemon/cli/host_list.hpp"
#include "daemon/cli/reading_view.hpp"

namespace busbar::cli {
namespace {

using google::protobuf::util::TimeUtil;
using steady = std::chrono::steady_clock;

constexpr auto second = std::chrono::seconds(1);
constexpr auto dial_again = std::chrono::milliseconds(500);

// Prefixes as typed, host lists expanded. Either spelling is the daemon's to read.
std::optional<std::vector<std::string>> prefixes_of(session& with) {
  std::vector<std::string> all;
  for (const std::string& typed : with.said().names) {
    const auto expanded = expand_host_list(typed);
    if (!expanded) {
      with.say(fmt::format("'{}' is no host list (r01/c[01-04]/power)", typed));
      return std::nullopt;
    }
    all.insert(all.end(), expanded->begin(), expanded->end());
  }
  return all;
}

// Who may hold readings of these names: the rack's own daemon, where one has its name; else all.
std::vector<std::size_t> holders(const session& with, const std::vector<std::string>& prefixes) {
  if (prefixes.empty()) return with.everyone();
  std::vector<std::size_t> whom;
  for (const std::string& prefix : prefixes) {
    const std::string plain = prefix.starts_with("racks/") ? prefix.substr(6) : prefix;
    for (const std::size_t one : with.holders_of("racks/" + plain.substr(0, plain.find('/')))) {
      if (std::find(whom.begin(), whom.end(), one) == whom.end()) whom.push_back(one);
    }
  }
  std::sort(whom.begin(), whom.end());
  return whom;
}

struct news {
  std::size_t from = 0;
  std::optional<v1::WatchReadingsResponse> readings;
  std::optional<call_result> lost;
};

// The readings of several daemons as one queue. One that goes away is dialled again.
class merged_readings {
 public:
  merged_readings(session& with, const std::vector<std::size_t>& whom,
                  const v1::WatchReadingsRequest& request)
      : with_(with) {
    for (const std::size_t one : whom) {
      threads_.emplace_back([this, one, request](const std::stop_token& stop) { read(stop, one, request); });
    }
  }
  std::optional<news> next(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [this] { return !queue_.empty(); })) return std::nullopt;
    news one = std::move(queue_.front());
    queue_.pop_front();
    return one;
  }

 private:
  void read(const std::stop_token& stop, std::size_t endpoint, const v1::WatchReadingsRequest& request) {
    while (!stop.stop_requested()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(with_.command_deadline() - steady::now());
      if (left.count() <= 0) return;
      const call_result end =
          // Later than the command's own end, which stops this thread: a deadline of the wire would look like a loss.
          with_.wire().watch_readings(endpoint, request, left + second, stop,
                                      [this, endpoint](const auto& readings) {
                                        push({endpoint, readings, std::nullopt});
                                        return true;
                                      });
      if (stop.stop_requested() || steady::now() >= with_.command_deadline()) return;
      push({endpoint, std::nullopt, end});
      if (!end.unanswered()) return;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, dial_again, [] { return false; });
    }
  }
  void push(news one) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(one));
    changed_.notify_all();
  }

  session& with_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<news> queue_;
  std::vector<std::jthread> threads_;  // last: joined before what they use goes
};

exit_code tell_lost(session& with, const news& one) {
  return one.lost->unanswered() ? with.tell_unreachable(one.from, *one.lost)
                                : with.tell(*one.lost, with.wire().endpoints()[one.from].instance);
}

// What all daemons hold of it at this moment.
exit_code gather(session& with, const std::vector<std::string>& prefixes, std::vector<v1::Point>& points,
                 listing& all) {
  const auto whom = holders(with, prefixes);
  v1::WatchReadingsRequest request;
  request.mutable_prefixes()->Assign(prefixes.begin(), prefixes.end());
  exit_code code = exit_code::done;
  for (const std::size_t one : whom) {
    const call_result result =
        with.wire().watch_readings(one, request, with.call_deadline(), {}, [&points](const auto& readings) {
          points.insert(points.end(), readings.points().begin(), readings.points().end());
          return false;
        });
    if (result.ok()) continue;
    if (result.unanswered()) all.unreachable.push_back({with.wire().endpoints()[one], result.message});
    code =
        worst(code, result.unanswered() ? with.tell_unreachable(one, result) : with.tell(result, "readings"));
  }
  std::sort(points.begin(), points.end(),
            [](const v1::Point& a, const v1::Point& b) { return a.name() < b.name(); });
  return code;
}

bool is_data(output format) {
  return format == output::json || format == output::yaml;
}

text_format data_of(output format) {
  return format == output::json ? text_format::json : text_format::yaml;
}

void print_point(session& with, const v1::Point& point) {
  std::ostream& out = with.world().out;
  const output format = with.said().format;
  if (is_data(format)) {
    out << item_text("Point", point, data_of(format));
  } else if (format == output::name) {
    out << point.name() << "\n";
  } else {
    const row cells = point_row(point, with.world().now());
    out << fmt::format("{:<40}  {}{}\n", cells[0], cells[1], cells[2] == "good" ? "" : "  " + cells[2]);
  }
}

// Draws over its last picture.
void draw(session& with, const cooling_view& view, std::size_t& height) {
  std::ostream& out = with.world().out;
  if (height > 0) out << fmt::format("\x1b[{}A", height);
  const auto lines = view.lines(with.world().terminal_rows - 1, with.world().terminal_columns);
  for (const std::string& line : lines) out << "\x1b[2K" << line << "\n";
  out << "\x1b[J" << std::flush;
  height = lines.size();
}

}  // namespace

exit_code get_readings(session& with) {
  const auto prefixes = prefixes_of(with);
  if (!prefixes) return exit_code::usage;
  std::vector<v1::Point> points;
  listing all;
  exit_code code = gather(with, *prefixes, points, all);
  if (points.empty() && !prefixes->empty() && code == exit_code::done) {
    with.say(
        fmt::format("no reading is known under {}; names: busbar get readings", fmt::join(*prefixes, ", ")));
    return exit_code::usage;
  }
  std::ostream& out = with.world().out;
  const output format = with.said().format;
  if (is_data(format)) {
    for (v1::Point& one : points) all.items.push_back(std::make_unique<v1::Point>(std::move(one)));
    out << list_text("PointList", all, data_of(format));
    return code;
  }
  if (format == output::name) {
    for (const v1::Point& one : points) out << one.name() << "\n";
    return code;
  }
  std::vector<row> rows = {point_header()};
  for (const v1::Point& one : points) rows.push_back(point_row(one, with.world().now()));
  if (format != output::wide) {
    for (row& one : rows) one.resize(4);
  }
  out << aligned(rows);
  return code;
}

exit_code watch_readings(session& with) {
  const auto prefixes = prefixes_of(with);
  if (!prefixes) return exit_code::usage;
  v1::WatchReadingsRequest request;
  request.mutable_prefixes()->Assign(prefixes->begin(), prefixes->end());
  const auto whom = holders(with, *prefixes);
  merged_readings readings(with, whom, request);
  exit_code code = exit_code::done;
  std::size_t refused = 0;
  while (steady::now() < with.command_deadline() && refused < whom.size()) {
    const auto one = readings.next(std::chrono::milliseconds(200));
    if (!one) continue;
    if (one->lost) {
      code = worst(code, tell_lost(with, *one));
      refused += one->lost->unanswered() ? 0U : 1U;
      continue;
    }
    for (const v1::Point& point : one->readings->points()) print_point(with, point);
    with.world().out << std::flush;
  }
  return refused == whom.size() ? code : worst(code, exit_code::timeout);
}

exit_code watch_cooling(session& with) {
  const auto names = with.names();
  if (!names) return exit_code::usage;
  if (names->size() != 1 || names->front().find('/', 6) != std::string::npos) {
    with.say("watch cooling wants one rack: busbar watch cooling r01");
    return exit_code::usage;
  }
  const std::string& rack = names->front();
  v1::WatchReadingsRequest request;
  for (const char* point :
       {"/power", "/flow", "/dp", "/supply_temperature", "/return_temperature", "/valves/"}) {
    request.add_prefixes(rack + point);
  }
  request.add_prefixes("cdus/");  // its pumps may be known to the plant's daemon alone
  const auto whom = with.everyone();
  merged_readings readings(with, whom, request);
  cooling_view view(rack);
  exit_code code = exit_code::done;
  std::size_t refused = 0;
  std::size_t height = 0;
  auto due = steady::now() + second / 4;  // the first answers come first
  while (steady::now() < with.command_deadline() && refused < whom.size()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - steady::now());
    const auto one = readings.next(std::max(left, std::chrono::milliseconds(1)));
    if (one && one->readings) view.apply(*one->readings);
    if (one && one->lost) {
      code = worst(code, tell_lost(with, *one));
      refused += one->lost->unanswered() ? 0U : 1U;
    }
    if (steady::now() < due) continue;
    due += second;
    view.sample();
    if (with.world().out_is_terminal) {
      draw(with, view, height);
    } else {
      with.world().out << view.line(with.world().now()) << "\n" << std::flush;
    }
  }
  return refused == whom.size() ? code : worst(code, exit_code::timeout);
}

exit_code read_history(session& with) {
  const auto names = prefixes_of(with);
  if (!names) return exit_code::usage;
  exit_code code = exit_code::done;
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(with.world().now().time_since_epoch()).count();
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(with.said().since).count();
  for (const std::string& name : *names) {
    v1::ReadHistoryRequest request;
    request.set_name(name);
    *request.mutable_from() = TimeUtil::SecondsToTimestamp(now - since);
    *request.mutable_to() = TimeUtil::SecondsToTimestamp(now + 1);
    if (with.said().step.count() > 0)
      *request.mutable_step() = TimeUtil::NanosecondsToDuration(with.said().step.count());
    v1::ReadHistoryResponse whole;
    call_result result;
    for (const std::size_t one : holders(with, {name})) {
      for (bool more = true; more;) {
        v1::ReadHistoryResponse part;
        result = with.wire().call(one, "ReadHistory", request, part, with.call_deadline());
        more = result.ok() && part.more() && part.samples_size() > 0;
        whole.set_unit(part.unit());
        if (more)
          *request.mutable_from() =
              TimeUtil::SecondsToTimestamp(part.samples().rbegin()->time().seconds() + 1);
        whole.mutable_samples()->MergeFrom(part.samples());
      }
      if (!result.ok() && result.unanswered()) code = worst(code, with.tell_unreachable(one, result));
      if (result.ok() || result.unanswered()) break;
    }
    if (!result.ok() && !result.unanswered()) code = worst(code, with.tell(result, name));
    if (!result.ok()) continue;
    std::ostream& out = with.world().out;
    if (is_data(with.said().format)) {
      out << item_text("History", whole, data_of(with.said().format));
    } else {
      out << sample_text(whole, name);
    }
  }
  return code;
}

}  // namespace busbar::cli
