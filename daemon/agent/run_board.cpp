#include "daemon/agent/run_board.hpp"

#include <algorithm>
#include <utility>

namespace busbar::agent_client {
namespace {

constexpr std::size_t queue_limit = 64;
constexpr std::chrono::seconds default_lease(60);
constexpr std::chrono::seconds default_slack(60);  // deadline of a run that names none: its duration and this

std::chrono::nanoseconds to_ns(const google::protobuf::Duration& duration) {
  return std::chrono::seconds(duration.seconds()) + std::chrono::nanoseconds(duration.nanos());
}

agent::TestDone not_ok(const agent::Run& run, const std::string& error) {
  agent::TestDone done;
  done.set_run_id(run.run_id());
  done.set_test(run.test());
  done.set_ok(false);
  done.set_error(error);
  return done;
}

bool same_test(const agent::Run& a, const agent::Run& b) {
  return a.run_id() == b.run_id() && a.test() == b.test();
}

}  // namespace

run_board::steps run_board::accept(const agent::Run& run, time_point now) {
  steps out;
  if (run.run_id().empty() || run.test().empty() || run.probe().empty()) {
    out.push_back(report_done{not_ok(run, "the order names no run, test or probe")});
    return out;
  }
  const auto length = run.has_lease() ? to_ns(run.lease()) : std::chrono::nanoseconds(default_lease);
  leases_[run.run_id()] = {length, now + length};
  const bool known =
      (current_ && same_test(current_->run, run) && current_->ended_because.empty()) ||
      std::any_of(queue_.begin(), queue_.end(), [&run](const agent::Run& q) { return same_test(q, run); });
  if (known) return out;
  const std::string superseded = "superseded by run " + run.run_id();
  drop_queued(run.run_id(), true, superseded, out);
  if (current_ && current_->run.run_id() != run.run_id()) end_current(superseded, out);
  if (queue_.size() >= queue_limit) {
    out.push_back(report_done{not_ok(run, "too many tests are queued on this tray")});
    return out;
  }
  queue_.push_back(run);
  start_next(out, now);
  return out;
}

run_board::steps run_board::cancel(const std::string& run_id, const std::string& why, time_point now) {
  steps out;
  drop_queued(run_id, false, why, out);
  if (current_ && current_->run.run_id() == run_id) end_current(why, out);
  start_next(out, now);
  forget_idle_leases();
  return out;
}

void run_board::renew(const std::string& run_id, time_point now) {
  const auto found = leases_.find(run_id);
  if (found != leases_.end()) found->second.until = now + found->second.length;
}

run_board::steps run_board::finished(bool ok, const std::string& error, time_point now) {
  steps out;
  if (!current_) return out;
  const bool cut = !current_->ended_because.empty();
  agent::TestDone done = not_ok(current_->run, cut ? current_->ended_because : error);
  done.set_ok(ok && !cut);
  out.push_back(report_done{std::move(done)});
  current_.reset();
  start_next(out, now);
  forget_idle_leases();
  return out;
}

run_board::steps run_board::tick(time_point now) {
  steps out;
  std::vector<std::string> unleased;
  for (const auto& [run_id, held] : leases_) {
    if (now >= held.until) unleased.push_back(run_id);
  }
  for (const auto& run_id : unleased) {
    drop_queued(run_id, false, "the lease was not renewed", out);
    if (current_ && current_->run.run_id() == run_id) end_current("the lease was not renewed", out);
    leases_.erase(run_id);
  }
  if (current_ && now >= current_->deadline) end_current("the deadline passed", out);
  start_next(out, now);
  forget_idle_leases();
  return out;
}

run_board::steps run_board::end_all(const std::string& why, time_point) {
  steps out;
  drop_queued("", true, why, out);
  if (current_) end_current(why, out);
  leases_.clear();
  return out;
}

std::optional<run_board::time_point> run_board::next_due() const {
  std::optional<time_point> due;
  const auto earlier = [&due](time_point candidate) {
    if (!due || candidate < *due) due = candidate;
  };
  for (const auto& [run_id, held] : leases_) earlier(held.until);
  if (current_ && current_->ended_because.empty()) earlier(current_->deadline);
  return due;
}

void run_board::start_next(steps& out, time_point now) {
  if (current_ || queue_.empty()) return;
  current_ = in_progress{std::move(queue_.front()), now, ""};
  queue_.pop_front();
  const auto& run = current_->run;
  current_->deadline =
      now + (run.has_deadline() ? to_ns(run.deadline()) : to_ns(run.duration()) + default_slack);
  out.push_back(start_test{run});
}

void run_board::drop_queued(const std::string& run_id, bool all_but, const std::string& why, steps& out) {
  std::deque<agent::Run> kept;
  for (auto& queued : queue_) {
    if ((queued.run_id() == run_id) != all_but) {
      out.push_back(report_done{not_ok(queued, why)});
    } else {
      kept.push_back(std::move(queued));
    }
  }
  queue_ = std::move(kept);
}

void run_board::end_current(const std::string& why, steps& out) {
  if (!current_->ended_because.empty()) return;
  current_->ended_because = why;
  out.push_back(cancel_test{});
}

void run_board::forget_idle_leases() {
  std::erase_if(leases_, [this](const auto& entry) {
    const std::string& run_id = entry.first;
    if (current_ && current_->run.run_id() == run_id) return false;
    return std::none_of(queue_.begin(), queue_.end(),
                        [&run_id](const agent::Run& q) { return q.run_id() == run_id; });
  });
}

}  // namespace busbar::agent_client
