#include "tests/support/deterministic.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_registry.hpp>
#include <caf/atom.hpp>
#include <caf/deep_to_string.hpp>
#include <caf/exit_reason.hpp>
#include <caf/local_actor.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace busbar::test_support {
namespace {

// A settle of more steps than this is an endless conversation, which would otherwise hang the test without a word.
constexpr std::size_t settle_limit = 2'000'000;
constexpr std::int64_t wall_start_ns = 1'767'225'600'000'000'000;

}  // namespace

deterministic_system::configuration::configuration() {
  config_file_path = "";
  set("scheduler.policy", caf::atom("testing"));
}

deterministic_system::deterministic_system()
    : system_(config_), coordinator_(dynamic_cast<caf::scheduler::test_coordinator*>(&system_.scheduler())) {
  if (coordinator_ == nullptr) {
    std::cerr << "CAF did not take the scheduler policy 'testing'\n";
    std::abort();
  }
  timers().current_time = virtual_scheduler::start_of_time;
  settle();
  tracking_ = true;
}

deterministic_system::~deterministic_system() {
  if (const std::size_t left = stop_all(); left != 0) {
    ADD_FAILURE() << left << " actors survived exit and kill";
    system_.await_actors_before_shutdown(false);
  }
}

std::int64_t deterministic_system::wall_ns() const {
  const auto elapsed = now() - virtual_scheduler::start_of_time;
  return wall_start_ns + std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count();
}

void deterministic_system::settle() {
  for (std::size_t step = 0; step < settle_limit; ++step) {
    if (coordinator_->has_job()) {
      run_job(0);
    } else if (!devices_.run_due_at(0)) {
      return;
    }
  }
  ADD_FAILURE() << "settle() found no end; running: " << (coordinator_->has_job() ? job_name(0) : "device callbacks");
}

void deterministic_system::advance(duration d) {
  const time_point end = now() + d;
  settle();
  for (auto due = next_due(); due.has_value() && *due <= end; due = next_due()) {
    move_to(*due);
    settle();
    if (::testing::Test::HasFatalFailure()) return;
  }
  move_to(end);
  settle();
}

bool deterministic_system::advance_until(const std::function<bool()>& done, duration limit) {
  const time_point end = now() + limit;
  settle();
  while (!done()) {
    const auto due = next_due();
    if (!due.has_value() || *due > end) {
      move_to(end);
      settle();
      return done();
    }
    move_to(*due);
    settle();
  }
  return true;
}

std::optional<deterministic_system::time_point> deterministic_system::next_due() const {
  auto earliest = devices_.next_later();
  const auto& schedule = timers().schedule();
  if (schedule.empty()) return earliest;
  const time_point timer = schedule.begin()->first;
  return earliest.has_value() ? std::min(*earliest, timer) : timer;
}

void deterministic_system::move_to(time_point t) {
  const time_point target = std::max(t, now());
  devices_.set_now(target);
  timers().advance_time(target - timers().current_time);
}

void deterministic_system::run_job(std::size_t index) {
  auto& jobs = coordinator_->jobs;
  const auto picked = jobs.begin() + static_cast<std::ptrdiff_t>(index);
  std::rotate(jobs.begin(), picked, picked + 1);
  see(jobs.front());
  coordinator_->run_once();
}

std::string deterministic_system::job_name(std::size_t index) const {
  const auto* actor = dynamic_cast<const caf::local_actor*>(coordinator_->jobs[index]);
  if (actor == nullptr) return "task";
  return std::string(actor->name()) + "#" + std::to_string(actor->id());
}

std::string deterministic_system::job_message(std::size_t index) const {
  auto* actor = dynamic_cast<caf::scheduled_actor*>(coordinator_->jobs[index]);
  if (actor == nullptr) return {};
  const auto* next = actor->mailbox().peek();
  return next == nullptr ? std::string{} : caf::to_string(next->content());
}

void deterministic_system::see(caf::resumable* job) {
  if (!tracking_) return;
  auto* actor = dynamic_cast<caf::local_actor*>(job);
  if (actor == nullptr || seen_.contains(actor->id())) return;
  seen_.emplace(actor->id(), caf::weak_actor_ptr{actor->ctrl()});
}

void deterministic_system::exit_those_left(caf::exit_reason reason) {
  for (const auto& [id, weak] : seen_) {
    if (const auto strong = weak.lock()) caf::anon_send_exit(caf::actor_cast<caf::actor>(strong), reason);
  }
  settle();
}

std::size_t deterministic_system::stop_all() {
  devices_.clear();
  settle();
  exit_those_left(caf::exit_reason::user_shutdown);
  // An ordered stop waits for timers; teardown does not. Children spawned meanwhile were seen by the first kill's settling.
  for (int round = 0; round < 3 && system_.registry().running() > 0; ++round) exit_those_left(caf::exit_reason::kill);
  devices_.clear();
  timers().cancel_all();
  seen_.clear();
  return system_.registry().running();
}

}  // namespace busbar::test_support
