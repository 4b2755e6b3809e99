// One member on a bench: its logic, a device that is a plain struct behind the real device calls, a rack that
// says yes, a clock that moves only to the next due time, and a power cut at any commit. CAF-free, one
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/devices/bmc_fake.hpp"
#include "actors/node/device_calls.hpp"
#include "actors/node/node_logic.hpp"

namespace busbar::node::test {

constexpr std::string_view rack_uid = "0a1b2c3d-0000-4000-8000-000000000001";

// What a scripted call answers instead of the device.
struct scripted_answer {
  absl::Status status;
  call_facts facts;
};
using script = std::function<std::optional<scripted_answer>(const call&)>;

enum class cut { none, before_effects, after_effects };

class tray_bench {
 public:
  explicit tray_bench(journal::MemberKind kind = journal::COMPUTE_TRAY);
  ~tray_bench();
  tray_bench(const tray_bench&) = delete;
  tray_bench& operator=(const tray_bench&) = delete;

  // Change these before start().
  journal::RackSpec spec;
  void want_firmware(std::uint32_t order, const std::string& component, const std::string& version,
                     const std::string& activation);

  // The member as it stands at a step, reached without its device being asked.
  void start_at(journal::NodeStep step);
  void start() { start_at(journal::DECLARED); }
  void aim(journal::NodeStep goal);
  void give(const node_event& event);
  // Delivers what is due, moving the clock, until done or nothing is due any more.
  bool run_until(const std::function<bool()>& done, int most_events = 60000);
  bool reaches(journal::NodeStep step);
  bool fails();                        // runs until the member has a named failure
  void heal(const node_event& event);  // gives it and runs until the member has begun again
  void settle();                       // runs until nothing is due
  void crash();                        // what is stored stays, and the device; the rest is gone
  void power_cut(int at_commit, cut where) {
    cut_at_ = commits + at_commit;
    cut_where_ = where;
  }

  std::string fault() const { return state.node.failure().fault(); }
  std::size_t calls_of(call_op op) const;
  bool told(std::string_view type, std::string_view words = {}) const;
  journal::Detector::Verdict all_detectors(journal::Detector::Verdict verdict);
  void mute(call_op op);  // asked, never answered
  void refuse(call_op op, absl::Status status);
  void refuse_once(call_op op, absl::Status status);

  std::shared_ptr<devices::fake_device> device = std::make_shared<devices::fake_device>();
  node_state state;
  journal::Node stored;
  core::instant now{1'000'000'000, 1'700'000'000'000'000'000};
  std::int64_t wake_at_ns = core::never_ns;
  std::vector<journal::Event> events;
  std::vector<call> calls;
  std::map<call_op, script> scripts;
  std::set<call_op> muted;
  std::map<std::string, std::string> vault;
  int commits = 0;
  int crashes = 0;
  int releases = 0;
  int spins = 0;  // wakes that were due at once again and did nothing
  bool grants = true;
  std::string refusal_words = "not yet";
  std::optional<core::fault> refusal_fault;
  absl::Status arming;
  bool agent_boots = true;
  bool tasks_end = true;
  bool activates = true;  // a reset or restart makes staged firmware current
  bool tests_answer = true;
  std::function<journal::SuiteResult(const std::string& run_id)> judge;
  std::vector<permit_kind> permits_asked;
  std::vector<std::string> tests_run, runs_cancelled;
  std::optional<devices::nvlink_facts> nvlink;
  std::vector<report_power> looks;

 private:
  class secrets;
  class agents;

  void deliver(const node_event& event);
  void perform(const effect& wanted);
  void perform_call(const call& wanted);
  void after_call(const call& wanted, std::size_t acts_before);
  void hello();

  std::shared_ptr<secrets> secrets_;
  std::shared_ptr<agents> agents_;
  std::shared_ptr<devices::bmc> driver_;
  std::deque<node_event> pending_;
  std::map<std::string, std::string> staged_firmware_;
  std::filesystem::path site_;
  int boots_ = 0;
  journal::NodeStep goal_ = journal::NODE_STEP_UNSPECIFIED;  // the rack tells it again after a crash
  int cut_at_ = -1;
  cut cut_where_ = cut::none;
  bool agent_up_ = false;  // of the host's present boot
};

absl::Status unreachable();

}  // namespace busbar::node::test
