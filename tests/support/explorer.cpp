#include "tests/support/explorer.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace busbar::test_support {
namespace {

std::optional<std::uint64_t> number_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

}  // namespace

std::optional<std::string> exploration_outcome::failure() const {
  if (violation.has_value()) return violation;
  if (!done) return stuck;
  return std::nullopt;
}

simulation::simulation(std::uint64_t seed)
    : seed_(seed), generator_(seed), with_messages_(number_from_environment("BUSBAR_TRACE").has_value()) {}

std::uint64_t simulation::choose(std::uint64_t bound) { return generator_() % bound; }

void simulation::add_fault(std::string name, std::function<void()> inject, unsigned at_most,
                           std::function<bool()> possible) {
  faults_.push_back({std::move(name), std::move(inject), std::move(possible), at_most});
}

void simulation::add_invariant(std::string name, invariant_check check) {
  invariants_.push_back({std::move(name), std::move(check)});
}

exploration_outcome simulation::run(const std::function<bool()>& done) {
  exploration_outcome outcome;
  const time_point end = now() + limits.time;
  outcome.violation = broken();
  while (!outcome.violation.has_value()) {
    if (done()) {
      outcome.done = true;
      break;
    }
    if (outcome.steps == limits.steps) {
      outcome.stuck = "not done after " + std::to_string(outcome.steps) + " steps";
      break;
    }
    if (now() > end) {
      outcome.stuck = "not done in the virtual time allowed";
      break;
    }
    if (!step()) {
      outcome.stuck = "not done, and nothing is left that could run";
      break;
    }
    ++outcome.steps;
    outcome.violation = broken();
  }
  return outcome;
}

bool simulation::step() {
  const std::size_t jobs = coordinator().jobs.size();
  const std::size_t callbacks = devices().due_count();
  if (strike()) return true;
  if (time_goes_on(jobs + callbacks)) return true;
  if (jobs + callbacks == 0) return false;
  const std::size_t pick = choose(jobs + callbacks);
  if (pick < jobs) {
    std::string text = job_name(pick);
    if (with_messages_) text += " " + job_message(pick);
    record('j', std::move(text));
    run_job(pick);
  } else {
    record('d', "callback " + std::to_string(pick - jobs) + " of " + std::to_string(callbacks));
    devices().run_due_at(pick - jobs);
  }
  return true;
}

bool simulation::strike() {
  if (faults_.empty() || choose(1000) >= limits.fault_per_mille) return false;
  fault& picked = faults_[choose(faults_.size())];
  if (picked.left == 0 || (picked.possible && !picked.possible())) return false;
  --picked.left;
  record('f', picked.name);
  picked.inject();
  return true;
}

bool simulation::time_goes_on(std::size_t runnable) {
  const auto due = next_due();
  if (!due.has_value()) return false;
  // With something runnable, time going on means that the host is late.
  if (runnable > 0 && (choose(16) != 0 || *due - now() > limits.lateness)) return false;
  const auto ahead = std::chrono::duration_cast<std::chrono::microseconds>(*due - now());
  record('t', "+" + std::to_string(ahead.count()) + "us");
  move_to(*due);
  return true;
}

std::optional<std::string> simulation::broken() const {
  for (const invariant& one : invariants_) {
    if (auto what = one.check()) return one.name + ": " + *what;
  }
  return std::nullopt;
}

void simulation::record(char kind, std::string text) {
  const auto since = now() - virtual_scheduler::start_of_time;
  trace_.push_back({kind, std::chrono::duration_cast<std::chrono::microseconds>(since).count(), std::move(text)});
}

std::string simulation::line(const entry& entry) {
  return std::to_string(entry.at_us) + "us " + entry.kind + " " + entry.text;
}

std::vector<std::string> simulation::trace() const {
  std::vector<std::string> lines;
  lines.reserve(trace_.size());
  for (const entry& one : trace_) lines.push_back(line(one));
  return lines;
}

std::uint64_t simulation::trace_digest() const {
  std::uint64_t digest = 0xcbf29ce484222325U;
  for (const entry& one : trace_) {
    for (const char c : line(one)) {
      digest ^= static_cast<unsigned char>(c);
      digest *= 0x100000001b3U;
    }
  }
  return digest;
}

std::string simulation::describe(std::size_t lines) const {
  const std::size_t from = trace_.size() > lines ? trace_.size() - lines : 0;
  std::string text = "seed " + std::to_string(seed_) + ", " + std::to_string(trace_.size()) + " steps, the last:\n";
  for (std::size_t i = from; i < trace_.size(); ++i) text += "  " + line(trace_[i]) + "\n";
  return text;
}

std::string exploration_report::describe() const {
  if (!failure.has_value()) return std::to_string(seeds) + " seeds hold";
  return "seed " + std::to_string(failure->seed) + ": " + failure->what + "\nrun it again with BUSBAR_SEED=" +
         std::to_string(failure->seed) + " BUSBAR_TRACE=1\n" + failure->trace;
}

exploration_report for_seeds(std::uint64_t count, const scenario& run_one, std::uint64_t first) {
  if (const auto only = number_from_environment("BUSBAR_SEED")) {
    first = *only;
    count = 1;
  } else {
    count = number_from_environment("BUSBAR_SEEDS").value_or(count);
  }
  exploration_report report;
  for (std::uint64_t seed = first; seed < first + count && !report.failure.has_value(); ++seed) {
    simulation sim(seed);
    auto what = run_one(sim);
    ++report.seeds;
    if (what.has_value()) report.failure = {seed, std::move(*what), sim.describe()};
  }
  return report;
}

}  // namespace busbar::test_support
