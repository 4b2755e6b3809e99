// Firmware by baseline rows: digest before the first byte, one update at a time, activation shared by rows of
// one kind, and the version read back decides. A crash between asking and knowing is settled by what the
// device already knows.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "actors/core/mutant.hpp"
#include "actors/node/login_phases.hpp"
#include "actors/node/node_phases.hpp"
#include "actors/node/power_phases.hpp"
#include "actors/node/restart_phases.hpp"

namespace busbar::node {
namespace {

using core::fault;
using journal::FirmwareProgress;

constexpr core::duration task_interval = std::chrono::milliseconds(500);
constexpr core::duration verify_interval = std::chrono::seconds(1);
constexpr std::int64_t longest_blind_ns = 600'000'000'000;
constexpr unsigned most_verify_reads = 5;

std::vector<journal::FirmwareRow> baseline_rows(machine& m) {
  const auto& by_kind = m.spec().baseline().firmware();
  const auto found = by_kind.find(std::string(m.kind_key()));
  if (found == by_kind.end()) return {};
  std::vector<journal::FirmwareRow> rows(found->second.rows().begin(), found->second.rows().end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    const bool a_bmc = a.activation() == "bmc_reset", b_bmc = b.activation() == "bmc_reset";
    return a_bmc != b_bmc ? a_bmc : a.order() < b.order();  // BMC rows come first
  });
  return rows;
}

const journal::FirmwareRow* row_of(const std::vector<journal::FirmwareRow>& rows,
                                   std::string_view component) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [component](const auto& row) { return row.component() == component; });
  return found == rows.end() ? nullptr : &*found;
}

FirmwareProgress* progress_of(machine& m, std::string_view component) {
  for (FirmwareProgress& row : *m.change().mutable_firmware()) {
    if (row.component() == component) return &row;
  }
  return nullptr;
}

bool is_settled(const FirmwareProgress& row) {
  return row.state() == FirmwareProgress::CURRENT || row.state() == FirmwareProgress::NOT_REQUIRED;
}

// A version that is not known is never the wanted one.
bool is_version(const FirmwareProgress& progress, const journal::FirmwareRow& row) {
  return !progress.seen().empty() && progress.seen() == row.version();
}

// The activation of the first row that is not settled; empty when all are.
std::string current_group(machine& m, const std::vector<journal::FirmwareRow>& rows) {
  for (const journal::FirmwareRow& row : rows) {
    for (const FirmwareProgress& progress : m.node().firmware()) {
      if (progress.component() == row.component() && !is_settled(progress)) return row.activation();
    }
  }
  return {};
}

void close_blind_window(machine& m) {
  give_permit_back(m);
  if (!m.node().blind_window()) return;
  m.change().set_blind_window(false);
  m.change().set_blind_until_wall_ns(0);
  m.close_intent("reset_manager");
  m.tell("blind_window_closed", "the BMC is back");
}

// Named with the versions that were wanted and are there.
outcome refused(machine& m, const std::string& why) {
  const FirmwareProgress& progress = *progress_of(m, m.run().component);
  return outcome::fail(fault::FIRMWARE_REFUSED, why,
                       fmt::format("{} {}", progress.component(), progress.wanted()),
                       progress.seen().empty() ? "unknown" : progress.seen());
}

std::string fact_of(const machine& m, const std::string& name) {
  const auto found = m.node().facts().find(name);
  return found == m.node().facts().end() ? std::string() : found->second;
}

outcome enter_read_firmware(machine& m) {
  if (baseline_rows(m).empty()) return outcome::done();
  return m.ask(call_op::read_firmware);
}

std::string version_of(const std::vector<devices::component_facts>& seen, std::string_view component) {
  for (const devices::component_facts& facts : seen) {
    if (facts.component == component) return facts.version.value_or("");
  }
  return {};
}

outcome take_read_firmware(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto& seen = *facts_of<std::vector<devices::component_facts>>(*done);
  const std::vector<FirmwareProgress> before(m.node().firmware().begin(), m.node().firmware().end());
  m.change().clear_firmware();
  for (const journal::FirmwareRow& row : baseline_rows(m)) {
    FirmwareProgress& progress = *m.change().add_firmware();
    progress.set_component(row.component());
    progress.set_wanted(row.version());
    progress.set_seen(version_of(seen, row.component()));
    const auto old = std::find_if(before.begin(), before.end(),
                                  [&row](const auto& p) { return p.component() == row.component(); });
    if (is_version(progress, row)) {
      progress.set_state(FirmwareProgress::CURRENT);
      m.close_intent("push_firmware", row.component());
    } else if (old != before.end() &&
               (old->state() == FirmwareProgress::PUSHING || old->state() == FirmwareProgress::PUSHED)) {
      progress.set_state(old->state());
      progress.set_task_uri(old->task_uri());
    }
  }
  m.close_intent("reset_manager");
  close_blind_window(m);
  return outcome::next();
}

outcome enter_pick_row(machine& m) {
  const auto rows = baseline_rows(m);
  const std::string group = current_group(m, rows);
  m.run().last_error = absl::OkStatus();
  if (group.empty()) return outcome::done();
  bool any_pushed = false;
  for (const journal::FirmwareRow& row : rows) {
    if (row.activation() != group) continue;
    const FirmwareProgress& progress = *progress_of(m, row.component());
    if (is_settled(progress)) continue;
    m.run().component = row.component();
    if (progress.state() == FirmwareProgress::PUSHING && !progress.task_uri().empty())
      return outcome::jump(phase_id::poll_task);
    if (progress.state() == FirmwareProgress::PUSHED) {
      any_pushed = true;
      continue;
    }
    return outcome::next();
  }
  if (!any_pushed) return outcome::done();
  if (group == "bmc_reset") return outcome::jump(phase_id::permit_blind);
  if (group == "host_restart") return go_restart(m, phase_id::verify_rows);
  return outcome::jump(phase_id::verify_rows);
}

outcome enter_check_image(machine& m) {
  const auto rows = baseline_rows(m);
  const journal::FirmwareRow& row = *row_of(rows, m.run().component);
  call wanted;
  wanted.op = call_op::check_image;
  wanted.text = row.image();
  wanted.names = {row.sha256()};
  return m.ask(std::move(wanted));
}

outcome take_check_image(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok() && !BUSBAR_MUTANT(wrong_digest_pushed)) return m.on_error(done->status);
  return outcome::next();
}

// An open push intent without a task: the POST may or may not have reached the device.
outcome enter_recover_push(machine& m) {
  if (!m.intent_is_open("push_firmware", m.run().component) || BUSBAR_MUTANT(push_repeated))
    return outcome::next();
  call wanted;
  wanted.op = call_op::find_update;
  wanted.text = m.run().component;
  return m.ask(std::move(wanted));
}

outcome take_recover_push(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto* uri = facts_of<std::string>(*done);
  if (uri == nullptr || uri->empty()) return outcome::next();
  FirmwareProgress& progress = *progress_of(m, m.run().component);
  progress.set_task_uri(*uri);
  progress.set_state(FirmwareProgress::PUSHING);
  return outcome::jump(phase_id::poll_task);
}

// A task that names no component may be the push whose answer was lost. It is waited for and the version read
// back decides. Before a push, such a task that is there already is waited for and remembered: it is not
// ours.
outcome enter_recover_unnamed(machine& m) {
  if (BUSBAR_MUTANT(push_repeated)) return outcome::jump(phase_id::push);
  return m.ask(call_op::find_unnamed_update);
}

outcome take_recover_unnamed(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const std::string uri = *facts_of<std::string>(*done);
  if (uri.empty()) return outcome::jump(phase_id::push);
  if (!m.intent_is_open("push_firmware", m.run().component)) {
    if (fact_of(m, "unnamed_before") != uri) (*m.change().mutable_facts())["unnamed_before"] = uri;
    return outcome::next();
  }
  if (fact_of(m, "unnamed_before") == uri) return outcome::jump(phase_id::push);  // had ended before our push
  (*m.change().mutable_facts())["unnamed_task"] = m.run().component;
  FirmwareProgress& progress = *progress_of(m, m.run().component);
  progress.set_task_uri(uri);
  progress.set_state(FirmwareProgress::PUSHING);
  return outcome::jump(phase_id::poll_task);
}

outcome enter_wait_unnamed(machine& m) {
  call wanted;
  wanted.op = call_op::read_task;
  wanted.text = fact_of(m, "unnamed_before");
  return m.ask(std::move(wanted));
}

outcome take_wait_unnamed(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const bool running = facts_of<devices::task_facts>(*done)->state == devices::task_state::running;
  if (!running) return outcome::next();
  m.run().attempts = 0;
  return outcome::again(task_interval);
}

outcome enter_push(machine& m) {
  const auto rows = baseline_rows(m);
  const journal::FirmwareRow& row = *row_of(rows, m.run().component);
  m.open_intent("push_firmware", row.component());
  call wanted;
  wanted.op = call_op::push_firmware;
  wanted.text = row.image();
  wanted.names = {row.component()};
  return m.ask(std::move(wanted));
}

outcome take_push(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) {
    constexpr unsigned most_pushes = 3;
    if (is_transient(done->status) && ++m.run().pushes < most_pushes) {
      m.run().last_error = done->status;
      return outcome::jump(phase_id::recover_push);
    }
    const auto named = core::fault_of(done->status);
    if (named.has_value() && named != fault::FIRMWARE_REFUSED && !is_transient(done->status))
      return m.on_error(done->status);
    return refused(m, std::string(done->status.message()));
  }
  FirmwareProgress& progress = *progress_of(m, m.run().component);
  progress.set_state(FirmwareProgress::PUSHING);
  m.run().pushes = 0;
  for (const char* earlier : {"task_gone", "unnamed_task", "unnamed_before"})
    m.change().mutable_facts()->erase(earlier);
  if (const auto* uri = facts_of<std::string>(*done)) progress.set_task_uri(*uri);
  m.tell("firmware_pushed", fmt::format("{} {} handed to the BMC", progress.component(), progress.wanted()));
  return outcome::next();
}

outcome enter_poll_task(machine& m) {
  const FirmwareProgress& progress = *progress_of(m, m.run().component);
  if (m.run().phase_deadline_ns == core::never_ns) {
    m.run().phase_deadline_ns = m.now().monotonic_ns + m.deadline_of("firmware_row", 2700);
  }
  call wanted;
  wanted.op = call_op::read_task;
  wanted.text = progress.task_uri();
  return m.ask(std::move(wanted));
}

// The task that was taken for ours did not bring the version: now it is known that a push is due.
outcome push_again(machine& m, const std::string& component) {
  m.change().mutable_facts()->erase("unnamed_task");
  FirmwareProgress& progress = *progress_of(m, component);
  progress.set_state(FirmwareProgress::PENDING);
  progress.clear_task_uri();
  m.run().verify_reads = 0;
  m.tell("firmware_push_due",
         fmt::format("an update that named no component has ended and {} still reads {}", component,
                     progress.seen().empty() ? "unknown" : progress.seen()),
         "warning");
  return outcome::jump(phase_id::pick_row);
}

outcome pushed(machine& m) {
  progress_of(m, m.run().component)->set_state(FirmwareProgress::PUSHED);
  m.close_intent("push_firmware", m.run().component);
  return outcome::jump(phase_id::pick_row);
}

outcome take_poll_task(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (m.now().monotonic_ns >= m.run().phase_deadline_ns) {
    return refused(m, fmt::format("the update of {} did not end in its time", m.run().component));
  }
  if (!done->status.ok()) return m.on_error(done->status);
  const auto& task = *facts_of<devices::task_facts>(*done);
  switch (task.state) {
    case devices::task_state::running:
      m.run().attempts = 0;
      return outcome::again(task_interval);
    case devices::task_state::completed:
      return pushed(m);
    case devices::task_state::gone:
      (*m.change().mutable_facts())["task_gone"] = m.run().component;
      return pushed(m);  // the version read back decides
    case devices::task_state::failed:
      break;
  }
  m.close_intent("push_firmware", m.run().component);
  if (fact_of(m, "unnamed_task") == m.run().component) return push_again(m, m.run().component);
  progress_of(m, m.run().component)->set_state(FirmwareProgress::FAILED);
  return refused(m, fmt::format("the update of {} failed: {}", m.run().component, task.message));
}

// ---- activation by a BMC reset: a planned blind window when the host is on
// ---------------------------------------------------------

outcome enter_permit_blind(machine& m) {
  return ask_permit(m, permit_kind::blind_window);
}

outcome take_permit_blind(machine& m, const node_event& event) {
  outcome result = take_permit(m, event);
  if (result.kind != outcome_kind::next) return result;
  m.change().set_blind_window(true);
  m.change().set_blind_until_wall_ns(m.now().wall_ns + longest_blind_ns);
  m.change().mutable_facts()->erase("blind_pin");  // of an earlier window
  m.tell("blind_window_opened", "the BMC is about to restart; its detectors cannot be read until it is back",
         "warning");
  return result;
}

outcome enter_manager_reset(machine& m) {
  if (!m.run().permit_held) return outcome::jump(phase_id::permit_blind);
  m.open_intent("reset_manager");
  return m.ask(call_op::reset_manager);
}

outcome take_manager_reset(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok() && !is_transient(done->status)) return m.on_error(done->status);
  m.run().session_open = false;
  m.run().own_session = false;
  m.change().mutable_access()->clear_session_uri();  // sessions end with the BMC's restart
  return outcome::next();
}

// The window is as long as the journal says, however often we restart meanwhile.
outcome enter_wait_bmc(machine& m) {
  if (m.node().blind_window() && m.run().phase_deadline_ns == core::never_ns) {
    const std::int64_t left_ns = m.node().blind_until_wall_ns() - m.now().wall_ns;
    m.run().phase_deadline_ns = m.now().monotonic_ns + std::clamp<std::int64_t>(left_ns, 0, longest_blind_ns);
  }
  return m.ask(call_op::probe);
}

outcome take_wait_bmc(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (const auto accepted = certificate_in_own_window(m, done->status)) return *accepted;
  const bool over = m.now().monotonic_ns >= m.run().phase_deadline_ns;
  if (!done->status.ok() && over && !BUSBAR_MUTANT(blind_window_without_end)) {
    return outcome::fail(
        fault::FIRMWARE_ACTIVATION,
        "the BMC did not come back in its blind window; its host is turned off as soon as it answers",
        "back within 10 min", std::string(done->status.message()));
  }
  if (!done->status.ok()) return m.on_error(done->status);
  m.run().last_error = absl::OkStatus();
  return outcome::jump(phase_id::login_after_reset);
}

outcome enter_login_after_reset(machine& m) {
  if (m.run().session_open) return outcome::next();  // under the certificate that was accepted
  return refuse_when_locked_out(m, call_op::login_own);
}

outcome take_login_after_reset(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (const auto accepted = certificate_in_own_window(m, done->status)) return *accepted;
  if (const auto problem = take_login(m, *done)) return *problem;
  m.run().own_session = true;
  return outcome::next();
}

outcome enter_verify_rows(machine& m) {
  return m.ask(call_op::read_firmware);
}

outcome take_verify_rows(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto& seen = *facts_of<std::vector<devices::component_facts>>(*done);
  const auto rows = baseline_rows(m);
  const std::string group = current_group(m, rows);
  for (const journal::FirmwareRow& row : rows) {
    FirmwareProgress& progress = *progress_of(m, row.component());
    if (row.activation() != group || progress.state() != FirmwareProgress::PUSHED) continue;
    progress.set_seen(version_of(seen, row.component()));
    if (is_version(progress, row) || BUSBAR_MUTANT(update_taken_as_done)) {
      progress.set_state(FirmwareProgress::CURRENT);
      m.tell("firmware_read_back", fmt::format("{} reads back {}", row.component(), row.version()));
      continue;
    }
    if (++m.run().verify_reads < most_verify_reads) return outcome::again(verify_interval);
    const auto gone = m.node().facts().find("task_gone");
    const bool lost = gone != m.node().facts().end() && gone->second == row.component();
    close_blind_window(m);
    if (fact_of(m, "unnamed_task") == row.component()) return push_again(m, row.component());
    progress.set_state(FirmwareProgress::FAILED);
    return outcome::fail(lost ? fault::FIRMWARE_TASK_LOST : fault::FIRMWARE_UNCHANGED,
                         fmt::format("{} reported done and reads back another version", row.component()),
                         row.version(), progress.seen().empty() ? "unknown" : progress.seen());
  }
  m.run().verify_reads = 0;
  close_blind_window(m);
  return outcome::jump(phase_id::pick_row);
}

constexpr phase own_phases[] = {
    {phase_id::recover_restart, "the host to come back from a restart begun before ours", fault::BOOT_TIMEOUT,
     enter_recover_restart, take_recover_restart},
    {phase_id::read_firmware, "its firmware versions", fault::BMC_SLOW, enter_read_firmware,
     take_read_firmware},
    {phase_id::pick_row, "", fault::FIRMWARE_REFUSED, enter_pick_row, nullptr},
    {phase_id::check_image, "the image's digest", fault::FIRMWARE_DIGEST, enter_check_image,
     take_check_image},
    {phase_id::recover_push, "the update that the BMC may already know", fault::FIRMWARE_TASK_LOST,
     enter_recover_push, take_recover_push},
    {phase_id::recover_unnamed, "the updates that the BMC knows without a component",
     fault::FIRMWARE_TASK_LOST, enter_recover_unnamed, take_recover_unnamed},
    {phase_id::wait_unnamed, "an update that names no component to end", fault::FIRMWARE_TASK_LOST,
     enter_wait_unnamed, take_wait_unnamed},
    {phase_id::push, "the BMC to take a firmware image", fault::FIRMWARE_REFUSED, enter_push, take_push},
    {phase_id::poll_task, "a firmware update to end", fault::FIRMWARE_REFUSED, enter_poll_task,
     take_poll_task},
    {phase_id::permit_blind, "the rack's permit for a blind window", fault::FIRMWARE_ACTIVATION,
     enter_permit_blind, take_permit_blind},
    {phase_id::manager_reset, "the BMC to take its restart", fault::FIRMWARE_ACTIVATION, enter_manager_reset,
     take_manager_reset},
    {phase_id::wait_bmc, "the BMC to come back from its restart", fault::FIRMWARE_ACTIVATION, enter_wait_bmc,
     take_wait_bmc},
    {phase_id::cert_bind, "", fault::BMC_UNREACHABLE, enter_cert_bind, nullptr},
    {phase_id::cert_login, "a login under its new certificate", fault::FIRMWARE_ACTIVATION, enter_cert_login,
     take_cert_login},
    {phase_id::cert_identify, "MAC and serial under its new certificate", fault::FIRMWARE_ACTIVATION,
     enter_identify, take_cert_identify},
    {phase_id::arm, "the interlock to take its new certificate", fault::POWER_INTERLOCK_NOT_ARMED,
     enter_rearm, take_arm},
    {phase_id::login_after_reset, "a login after the BMC's restart", fault::FIRMWARE_ACTIVATION,
     enter_login_after_reset, take_login_after_reset},
    {phase_id::verify_rows, "the new versions to be read back", fault::FIRMWARE_UNCHANGED, enter_verify_rows,
     take_verify_rows},
};

const std::vector<phase>& joined() {
  static const std::vector<phase> phases = [] {
    std::vector<phase> all(std::begin(own_phases), std::end(own_phases));
    const auto shared = restart_phases();
    all.insert(all.end(), shared.begin(), shared.end());
    return all;
  }();
  return phases;
}

}  // namespace

std::span<const phase> firmware_phases() {
  return joined();
}

}  // namespace busbar::node
