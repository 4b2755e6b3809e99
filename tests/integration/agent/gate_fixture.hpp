// A gate on a free port, a place where its events wait to be looked at, and one loop for agents. All waits
// are bounded by the test's own timeout in ctest; none is a sleep.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/agent/agent_client.hpp"
#include "daemon/busbard/rpc/agent_gate.hpp"

namespace busbar::test {

using validation::agent_event;

class event_box {
 public:
  void put(agent_event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }

  // The next event in order; a test that gets another kind than it names fails there.
  agent_event next() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [this] { return !events_.empty(); });
    if (events_.empty()) {
      ADD_FAILURE() << "no event came";
      return {};
    }
    agent_event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  // The next event that is not one of progress.
  agent_event next_result() {
    agent_event event = next();
    while (event.what == agent_event::kind::progress) event = next();
    return event;
  }

  bool empty() {
    const std::lock_guard lock(mutex_);
    return events_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<agent_event> events_;
};

// Remembers the phases an agent went through; wait() gives the reason of the first one of that kind still
// unseen. What the agent writes to is shared, for the agent may outlive the test's own box.
class phase_box {
 public:
  agent_client::agent_client::observer observer() {
    return [seen = seen_](agent_client::agent_phase phase, const std::string& why) {
      const std::lock_guard lock(seen->mutex);
      seen->phases.push_back({phase, why});
      seen->changed.notify_all();
    };
  }

  std::string wait(agent_client::agent_phase wanted) {
    std::unique_lock lock(seen_->mutex);
    std::string why = "never";
    seen_->changed.wait_for(lock, std::chrono::seconds(30), [this, wanted, &why] {
      while (!seen_->phases.empty()) {
        const auto first = seen_->phases.front();
        seen_->phases.pop_front();
        if (first.first != wanted) continue;
        why = first.second;
        return true;
      }
      return false;
    });
    return why;
  }

 private:
  struct seen {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::pair<agent_client::agent_phase, std::string>> phases;
  };
  std::shared_ptr<seen> seen_ = std::make_shared<seen>();
};

// An engine whose runs end when the test says so.
class held_engine final : public agent_client::engine {
 public:
  std::string name() const override { return "held"; }
  std::string sha256() const override { return std::string(64, 'a'); }
  bool offers(const std::string& probe) const override { return probe == "diagnostics"; }
  void start(const agent::Run&, agent_client::run_callbacks report) override {
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
    running_ = true;
    changed_.notify_all();
  }
  void cancel() override { end(false, "cancelled"); }

  agent_client::run_callbacks wait_for_run() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [this] { return running_; });
    return report_;
  }
  void end(bool ok, const std::string& error) {
    std::unique_lock lock(mutex_);
    if (!std::exchange(running_, false)) return;
    const auto report = std::move(report_);
    lock.unlock();
    report.done(ok, error);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  agent_client::run_callbacks report_;
  bool running_ = false;
};

class gate_test : public ::testing::Test {
 protected:
  gate_test() : ca_pair_(*rpc::agent_ca::create("r01")) {
    std::string pattern = (std::filesystem::temp_directory_path() / "busbar-agent-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    // An address of this process alone: a gate that is opened again finds its port free whatever else runs on
    // this host.
    const int pid = static_cast<int>(getpid());
    host_ = "127." + std::to_string(64 + pid / 62500 % 60) + "." + std::to_string(1 + pid / 250 % 250) + "." +
            std::to_string(1 + pid % 250);
  }
  ~gate_test() override {
    agents_.clear();
    gate_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string endpoint() const { return host_ + ":" + std::to_string(port_); }

  void open_gate(const std::function<void(rpc::agent_gate_options&)>& change = {}) {
    rpc::agent_gate_options options;
    options.endpoint = endpoint();
    options.state_dir = folder_;
    if (change) change(options);
    auto opened = rpc::agent_gate::start(options, *rpc::agent_ca::from_pem(ca_pair_),
                                         [this](agent_event event) { events_.put(std::move(event)); });
    ASSERT_TRUE(opened.ok()) << opened.status();
    gate_ = *std::move(opened);
    port_ = gate_->port();
  }

  agent_client::agent_options options_for(const std::string& token, const std::string& serial) const {
    agent_client::agent_options options;
    options.endpoint = endpoint();
    options.token = token;
    options.boot_id = "boot-1";
    options.dmi_serial = serial;
    options.limits = "reference";
    options.first_wait = std::chrono::milliseconds(5);
    options.longest_wait = std::chrono::milliseconds(100);
    return options;
  }

  agent_client::agent_client& start_agent(agent_client::agent_options options,
                                          std::vector<std::shared_ptr<agent_client::engine>> engines,
                                          phase_box* phases) {
    agents_.push_back(std::make_unique<agent_client::agent_client>(
        loop_, std::move(options), std::move(engines), phases != nullptr ? phases->observer() : nullptr));
    agents_.back()->start();
    return *agents_.back();
  }

  static agent::Run run_of(const std::string& run_id, const std::string& test, const std::string& probe) {
    agent::Run run;
    run.set_run_id(run_id);
    run.set_test(test);
    run.set_probe(probe);
    run.mutable_duration()->set_seconds(1);
    run.mutable_deadline()->set_seconds(30);
    run.mutable_lease()->set_seconds(30);
    return run;
  }

  std::filesystem::path folder_;
  rpc::key_and_certificate ca_pair_;
  std::string host_;
  int port_ = 0;
  event_box events_;
  agent_client::event_loop loop_;
  std::unique_ptr<rpc::agent_gate> gate_;
  std::vector<std::unique_ptr<agent_client::agent_client>> agents_;
};

}  // namespace busbar::test
