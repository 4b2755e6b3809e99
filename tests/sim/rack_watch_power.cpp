// What the watch says about power: turned on only while everything is proven, off in the reverse order.
#include "actors/node/detector_logic.hpp"
#include "actors/rack/rack_rules.hpp"
#include "tests/sim/rack_watch.hpp"

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;

// What the rules say, and what a reading may lag behind the truth: the CDU is read once a second and believed
// for 4 s. The soak is 10 s by its readings, whose noise may be ahead of the truth by one look of this watch.
constexpr sim::instant flow_soak = 9s;
constexpr sim::instant flow_belief = 5s;
// A detector read this long ago says nothing about a power-on now (the longest the bus and its time-outs hold
// one up).
constexpr sim::instant detector_belief = 120s;
// When a power-on leaves: its tray's detectors are read at most 3 s before the decision, which leaves within
// 2 s or not at all; the rest is mail between actors.
constexpr sim::instant detector_age_at_sending = 8s;
// So much later than its permit an inrush may come.
constexpr sim::instant inrush_lag = 2500ms;
// Between the permit, which asks for the gate, and the reading of the detectors that follows it.
constexpr sim::instant gate_belief = 5s;

journal::MemberKind kind_of(sim::device_kind kind) {
  return kind == sim::device_kind::compute_tray ? journal::COMPUTE_TRAY : journal::SWITCH_TRAY;
}

}  // namespace

void rack_watch::gate_known(const std::string& member, bool open) {
  for (auto& [address, each] : devices_) {
    if (each.member == member) each.known_shut = !open;
  }
}

void rack_watch::nothing_is_known() {
  for (auto& [address, each] : devices_) each.known_shut = false;
}

// What the rack knows and has written down, or has heard of the interlock, holds at the moment of sending.
void rack_watch::no_energy_past_a_shut_gate(const seen_device& device, const std::string& act) {
  if (device.kind == sim::device_kind::power_shelf) return;
  const std::string what = device.member + ": " + act + " was sent ";
  if (device.known_shut) report(what + "when the rack knew that the interlock's gate was shut");
  if (act == "\"On\"" && now_ - device.detectors_read > detector_age_at_sending)
    report(what + "on a look at its detectors that was long ago");
  if (acknowledged_ == nullptr) return;
  const auto node = acknowledged_()->node(device.member);
  if (node != nullptr && node->leak_latched()) report(what + "with a leak latched on it");
  const auto rack = acknowledged_()->rack(spec_.manifest().rack());
  if (rack == nullptr) return;
  for (const journal::Condition& row : rack->conditions()) {
    if (row.type() != "FLOW_PROVEN" && row.type() != "RACK_DETECTORS_DRY") continue;
    if (row.health() == journal::HEALTH_BAD) report(what + "under the condition " + row.message());
  }
}

void rack_watch::no_power_on_unproven(seen_device& device, const sim::journal_record& record) {
  ++power_ons_;
  const std::string what = record.device + ": " + record.argument + " while ";
  for (const char* const name : {"r01_rope", "r01_pan"}) {
    const auto before = record.received - flow_belief;
    if (before.count() > 0 && truth_of("cdu01", name, before) != detector_truth::dry &&
        truth_of("cdu01", name, record.received) != detector_truth::dry) {
      report(what + std::string("rack detector ") + name + " was not dry");
    }
  }
  if (device.kind == sim::device_kind::power_shelf) return;
  no_power_beyond_the_limits(device, record);
  const bool good = flow_good_since_ && record.received - *flow_good_since_ >= flow_soak;
  const bool just_lost =
      flow_bad_since_ && record.received - *flow_bad_since_ <= flow_belief && good_before_bad_ >= flow_soak;
  if (!good && !just_lost) {
    const auto ago = [&record](const std::optional<sim::instant>& since) {
      return since ? std::to_string((record.received - *since) / 1ms) + " ms" : std::string("never");
    };
    report(what + "the flow was not proven: good for " + ago(flow_good_since_) + ", bad for " +
           ago(flow_bad_since_) + ", good before for " + std::to_string(good_before_bad_ / 1ms) + " ms");
  }
  for (const std::string& name : node::needed_detectors(spec_.sku(), kind_of(device.kind))) {
    const auto read = device.last_read.find(name);
    if (read == device.last_read.end() || record.received - device.detectors_read > detector_belief) {
      report(what + "detector " + name + " was not read");
    } else if (read->second != detector_truth::dry) {
      report(what + "detector " + name + " was read and not dry");
    }
  }
  if (device.gate_closed_since && *device.gate_closed_since + gate_belief < device.detectors_read)
    report(what + "the interlock's gate was closed");
}

void rack_watch::no_power_beyond_the_limits(const seen_device& device, const sim::journal_record& record) {
  const journal::PowerSpec& limits = spec_.manifest().power();
  double drawn_kw = 0;
  for (const auto& [address, each] : devices_) {
    if (each.kind != sim::device_kind::compute_tray && each.kind != sim::device_kind::switch_tray) continue;
    if (each.member != device.member && !is_powered(each.member)) continue;
    drawn_kw +=
        each.kind == sim::device_kind::compute_tray ? rack::compute_tray_peak_kw : rack::switch_tray_peak_kw;
  }
  if (limits.rack_limit_kw() > 0 && drawn_kw > limits.rack_limit_kw())
    report(record.device + ": turned on, and the rack may draw " + std::to_string(drawn_kw) + " kW");
  const auto interval = std::chrono::seconds(limits.group_interval().seconds()) +
                        std::chrono::nanoseconds(limits.group_interval().nanos());
  inrushes_.push_back(record.received);
  if (limits.inrush_per_tray_a() <= 0 || interval <= inrush_lag) return;
  const auto room = static_cast<std::size_t>(limits.inrush_limit_a() / limits.inrush_per_tray_a());
  if (inrushes_.size() <= room) return;
  if (record.received - inrushes_[inrushes_.size() - 1 - room] < interval - inrush_lag)
    report(record.device + ": more trays were turned on at once than the inrush limit holds");
}

void rack_watch::off_in_reverse_order(const seen_device& device, const sim::journal_record& record) {
  const auto rack = acknowledged_ == nullptr ? nullptr : acknowledged_()->rack(spec_.manifest().rack());
  if (rack == nullptr || !rack->shutting_down() || device.kind == sim::device_kind::compute_tray) return;
  for (const auto& [address, other] : devices_) {
    const bool before =
        other.kind == sim::device_kind::compute_tray ||
        (other.kind == sim::device_kind::switch_tray && device.kind == sim::device_kind::power_shelf);
    if (before && is_powered(other.member))
      report(record.device + " was turned off while " + other.member + " was on");
  }
}

}  // namespace busbar::test_support
