// What the interlock did, in the journal's words: its numbered lines imported once each, its open trips taken
// as the end of whatever they touch, its suspicions and bypasses shown.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "actors/core/mutant.hpp"
#include "actors/rack/rack_engine.hpp"
#include "actors/rack/rack_members.hpp"

namespace busbar::rack {

using core::fault;
using interlock::Latch;

namespace {

constexpr std::string_view imported_fact = "latches_imported";
constexpr std::string_view rack_trip_fact = "trip";  // number of the rack's trip that was taken
constexpr std::string_view reach_type = "INTERLOCK_REACHES";
constexpr std::int64_t unreached_after_ns = 15'000'000'000;
constexpr std::string_view trips_text_fact =
    "trips";  // what a trip does with the record held, and what it cannot
constexpr std::string_view trip_type = "TRIP_OPEN";
constexpr std::string_view suspicion_type = "LEAK_SUSPECTED";
constexpr std::string_view bypass_type = "BYPASSED";

std::string time_text(std::int64_t wall_ns) {
  if (wall_ns <= 0) return "at an unknown time";
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(wall_ns / 1'000'000'000)));
}

std::uint64_t imported(const journal::Rack& rack) {
  const auto known = rack.facts().find(std::string(imported_fact));
  return known == rack.facts().end() ? 0 : std::stoull(known->second);
}

// What is said of a kind of line: the event's type and how grave it is.
struct story {
  std::string_view type, severity, words;
};

story story_of(Latch::Kind kind) {
  if (kind == Latch::LEAK_SEEN) return {"leak_latched", "error", "a leak was seen"};
  if (kind == Latch::RESET) return {"leak_latch_reset", "warning", "reset"};
  if (kind == Latch::TRIP_OPENED) return {"trip_opened", "error", "trip opened"};
  if (kind == Latch::STEP_DONE) return {"trip_step_done", "info", "done"};
  if (kind == Latch::TRIP_CLOSED) return {"trip_closed", "warning", "trip done; it stays latched"};
  if (kind == Latch::BYPASS) return {"bypassed", "warning", "bypassed"};
  if (kind == Latch::BYPASS_ENDED) return {"bypass_ended", "info", "bypass ended"};
  if (kind == Latch::LOST) return {"latch_lines_lost", "error", "lines before this one are missing"};
  return {"interlock_line", "warning", "a line of a kind that this release does not know"};
}

void put_details(journal::Event& told, const Latch& line) {
  auto& details = *told.mutable_details();
  details["number"] = std::to_string(line.number());
  details["device"] = line.device();
  details["time"] = time_text(line.wall_time_ns());
  if (line.trip() != 0) details["trip"] = std::to_string(line.trip());
  if (line.cause() != interlock::CAUSE_UNSPECIFIED) details["cause"] = std::string(words_of(line.cause()));
  if (!line.detector().empty()) details["detector"] = line.detector();
  if (!line.principal().empty()) details["principal"] = line.principal();
  if (line.until_wall_ns() != 0) details["until"] = time_text(line.until_wall_ns());
}

}  // namespace

// The interlock's latch file is numbered; what is above the last imported number, and synced there, is read
// and written into the journal. A line that its host may still lose is not taken: it would be missed later.
void engine::watch_latches() {
  if (run().interlock == nullptr || run().interlock->status == nullptr || run().reading_latches) return;
  const interlock::Status& status = *run().interlock->status;
  const std::uint64_t after = imported(rack());
  if (std::max(status.last_record_number(), status.last_latch_number()) <= after) return;
  run().reading_latches = true;
  act(read_latches{after});
}

void engine::import_latches(std::vector<Latch> latches) {
  run().reading_latches = false;
  if (run().interlock == nullptr || run().interlock->status == nullptr) return;
  const interlock::Status& status = *run().interlock->status;
  const std::uint64_t synced = std::max(status.last_record_number(), status.last_latch_number());
  std::sort(latches.begin(), latches.end(),
            [](const Latch& a, const Latch& b) { return a.number() < b.number(); });
  for (const Latch& line : latches) {
    if (line.number() <= imported(rack()) || line.number() > synced) continue;
    (*change().mutable_facts())[std::string(imported_fact)] = std::to_string(line.number());
    import_line(line);
  }
}

void engine::import_line(const Latch& line) {
  const bool old_kind = line.kind() == Latch::LEAK_SEEN || line.kind() == Latch::RESET;
  if (old_kind || BUSBAR_MUTANT(trip_import_as_reset)) return import_leak_or_reset(line);
  const story says = story_of(line.kind());
  std::string text = fmt::format("interlock record {}, {}: {} {}", line.number(),
                                 time_text(line.wall_time_ns()), line.device(), says.words);
  if (!line.detector().empty()) text += fmt::format(", detector {}", line.detector());
  if (line.cause() != interlock::CAUSE_UNSPECIFIED) text += fmt::format(" ({})", words_of(line.cause()));
  if (!line.principal().empty()) text += fmt::format(", by {}", line.principal());
  if (!line.detail().empty()) text += fmt::format(": {}", line.detail());
  if (line.kind() == Latch::BYPASS) text += fmt::format("; until {}", time_text(line.until_wall_ns()));
  journal::Event& told = tell(says.type, text, says.severity);
  put_details(told, line);
  if (line.kind() == Latch::TRIP_OPENED) told.set_fault(std::string(core::name_of(fault::TRIP_OPEN)));
  if (line.kind() == Latch::BYPASS || line.kind() == Latch::BYPASS_ENDED) import_bypass(line);
  const auto member = run().members.find(line.device());
  if (line.kind() == Latch::STEP_DONE && member != run().members.end())
    act(tell_read_off{line.device(), fmt::format("trip {}, {}", line.trip(), line.detail())});
}

void engine::import_leak_or_reset(const Latch& line) {
  const bool leak = line.kind() == Latch::LEAK_SEEN;
  const std::string text = leak ? fmt::format("interlock record {}: {} saw a leak: {}", line.number(),
                                              line.detector(), line.detail())
                                : fmt::format("interlock record {}: reset by {}: {}", line.number(),
                                              line.principal(), line.detail());
  const bool of_trip = !leak && line.device() == rack().name();
  const story says = story_of(line.kind());
  put_details(
      tell(of_trip ? "trip_reset" : says.type, fmt::format("{}: {}", line.device(), text), says.severity),
      line);
  if (run().members.contains(line.device())) {
    act(tell_latch{line.device(), leak, text, line.detector()});
  } else if (line.device() != "*" && line.device() != rack().name()) {
    auto& facts = *change().mutable_facts();  // a sensor of the whole rack, at the CDU
    const std::string key = std::string(latched_fact) + line.device();
    if (leak) facts[key] = line.detector();
    if (!leak) facts.erase(key);
  }
  if (!leak && line.device() == "*") acknowledge_lost_latches(text);
}

void engine::import_bypass(const Latch& line) {
  journal::Rack& changed = change();
  auto& rows = *changed.mutable_bypasses();
  for (int i = rows.size() - 1; i >= 0; --i) {
    if (rows[i].device() == line.device() && rows[i].detector() == line.detector()) rows.DeleteSubrange(i, 1);
  }
  if (line.kind() != Latch::BYPASS) return;
  journal::Bypass& row = *rows.Add();
  row.set_device(line.device());
  row.set_detector(line.detector());
  row.set_owner(line.principal());
  row.set_reason(line.detail());
  row.set_until_wall_ns(line.until_wall_ns());
}

// Not watched, and nothing known to be wrong: neither good nor bad. It blocks nothing.
void engine::show_bypasses() {
  std::string text;
  for (const journal::Bypass& row : rack().bypasses()) {
    text +=
        fmt::format("{}detector {} of {} is bypassed by {} until {}: {}", text.empty() ? "" : "; ",
                    row.detector(), row.device(), row.owner(), time_text(row.until_wall_ns()), row.reason());
  }
  if (!text.empty()) return set_condition(bypass_type, journal::HEALTH_UNKNOWN, text);
  if (is_shown(bypass_type)) set_condition(bypass_type, true, "no detector is bypassed");
}

// What a trip would command or listen to besides the trays, and could not: shelves, valves, the CDU. Trays
// have a watch of their own. In a rack that is dark nothing of it is missed.
void engine::watch_reach() {
  const interlock::Status& status = *run().interlock->status;
  std::string lost;
  for (const interlock::DeviceStatus& row : status.devices()) {
    const auto member = run().members.find(row.name());
    const bool tray = member != run().members.end() && is_tray(*member->second);
    if (tray || row.armed() || row.blind() || rack().step() < journal::STANDBY) {
      run().unreached_since.erase(row.name());
      continue;
    }
    const auto since = run().unreached_since.try_emplace(row.name(), now_.monotonic_ns).first->second;
    if (now_.monotonic_ns - since < unreached_after_ns) continue;
    lost += (lost.empty() ? "" : ", ") + row.name();
  }
  if (!lost.empty()) {
    set_condition(reach_type, false,
                  "the interlock does not read " + lost + ": what a trip needs of it may not be done");
  } else if (is_shown(reach_type)) {
    set_condition(reach_type, true, "the interlock reads all that a trip needs");
  }
}

void engine::watch_trips() {
  show_bypasses();
  if (run().interlock == nullptr || run().interlock->status == nullptr) return;
  const interlock::Status& status = *run().interlock->status;
  const auto told = rack().facts().find(std::string(trips_text_fact));
  const bool alive = run().interlock->life == interlock_life::alive;
  if (alive) watch_reach();
  if (alive && !status.trips_text().empty() &&
      (told == rack().facts().end() || told->second != status.trips_text()))
    (*change().mutable_facts())[std::string(trips_text_fact)] = status.trips_text();
  std::string open;
  for (const interlock::TripStatus& trip : status.open_trips()) {
    open += fmt::format("{}{}{}{}", open.empty() ? "" : "; ", trip_words(trip),
                        trip.closed() ? "; done, latched until a person resets it" : "",
                        trip.alarm() ? "; ALARM: a device does not obey" : "");
    tell_trip_to_members(trip);
    if (trip.scope() == rack().name()) {
      take_rack_trip(trip);
    } else {
      end_suite_over(trip);
    }
  }
  if (!open.empty()) {
    set_condition(trip_type, false, open);
  } else if (is_shown(trip_type)) {
    set_condition(trip_type, true, "no trip is open");
  }
  if (!status.suspected_leak().empty()) {
    set_condition(suspicion_type, false, status.suspected_leak());
  } else if (is_shown(suspicion_type)) {
    set_condition(suspicion_type, true, "the suspicion has ended");
  }
}

void engine::tell_trip_to_members(const interlock::TripStatus& trip) {
  const std::string number = std::to_string(trip.number());
  for (const auto& [name, member] : run().members) {
    if (trip.scope() != rack().name() && trip.scope() != name) continue;
    // A step's own line is told once and can be lost with this process: a trip that is done says it again.
    const bool unread = node::is_tripped(*member) && member->power().observed() == journal::POWER_UNKNOWN;
    if (trip.closed() && unread) act(tell_read_off{name, fmt::format("trip {} is done", trip.number())});
    const auto known = member->facts().find(std::string(node::trip_fact));
    const bool knows = known != member->facts().end() && known->second == number;
    if (knows || run().trips_told[name] == trip.number()) continue;
    run().trips_told[name] = trip.number();
    act(tell_trip{name, trip.number(), trip_words(trip), trip.scope() == rack().name()});
  }
}

// The rack is dark, or on its way there: what was proven of it holds no more, and nothing goes on by itself.
void engine::take_rack_trip(const interlock::TripStatus& trip) {
  if (BUSBAR_MUTANT(trip_open_ignored_by_bringup)) return;
  const auto known = rack().facts().find(std::string(rack_trip_fact));
  const bool taken = known != rack().facts().end() && known->second == std::to_string(trip.number());
  if (taken && !is_bringing_up()) return;
  (*change().mutable_facts())[std::string(rack_trip_fact)] = std::to_string(trip.number());
  if (rack().shutting_down()) return;  // it goes on, and ends when everything is read off
  fail(fault::TRIP_OPEN, trip_words(trip));
  journal::Rack& changed = change();
  changed.set_goal(journal::PLANNED);
  if (changed.step() > journal::PLANNED) enter_step(journal::PLANNED);
  changed.set_state("emergency_off");
  changed.set_waits_for("a person: " + std::string(core::text_of(fault::TRIP_OPEN).next_step));
  changed.mutable_suite()->Clear();
  changed.clear_gates();
  run().pending.clear();
}

// One tray of the declared run is off: the run cannot be whole any more.
void engine::end_suite_over(const interlock::TripStatus& trip) {
  if (!is_bringing_up() || (!run().test_running && !run().judging)) return;
  const auto& ran = rack().suite().members();
  if (std::find(ran.begin(), ran.end(), trip.scope()) == ran.end()) return;
  fail(fault::TRIP_OPEN, fmt::format("{}; {} was in the rack suite's run", trip_words(trip), trip.scope()));
}

// The certificate that the CDU was first read under is kept: after a restart another one is refused.
void engine::keep_cdu_pin() {
  const auto& facts = run().cooling.facts;
  if (!facts.has_value() || facts->certificate_sha256.empty()) return;
  const std::string& address = rack().spec().manifest().cooling().address();
  if (known_cdu_pin(rack()).has_value()) return;
  journal::Rack& changed = change();
  (*changed.mutable_facts())[std::string(cdu_pin_fact)] = facts->certificate_sha256;
  (*changed.mutable_facts())[std::string(cdu_address_fact)] = address;
  tell("cdu_pinned",
       fmt::format("the CDU at {} is known by certificate {}", address, facts->certificate_sha256));
}

// Rope and pan as last read: shown, and written when a verdict changes.
void engine::keep_rack_detectors() {
  const auto& facts = run().cooling.facts;
  std::vector<journal::Detector> rows;
  const bool stale =
      !run().cooling.last_error.ok() && rack_detectors_not_dry(run().cooling, now_).has_value();
  if (facts.has_value()) {
    for (const devices::detector_facts& seen : facts->detectors) {
      journal::Detector& row = rows.emplace_back();
      row.set_name(seen.name);
      row.set_verdict(stale ? journal::Detector::UNKNOWN : seen.verdict);
      if (row.verdict() != journal::Detector::DRY) row.set_detail(stale ? "not read in time" : seen.detail);
      row.set_reaction(seen.reaction.value_or(""));
    }
  }
  const auto& shown = rack().detectors();
  const bool same =
      std::equal(rows.begin(), rows.end(), shown.begin(), shown.end(), [](const auto& a, const auto& b) {
        return a.name() == b.name() && a.verdict() == b.verdict() && a.reaction() == b.reaction();
      });
  if (!same) change().mutable_detectors()->Assign(rows.begin(), rows.end());
}

}  // namespace busbar::rack
