#include "actors/manifest/spec_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "actors/manifest/names.hpp"
#include "actors/manifest/values.hpp"

namespace busbar::manifest {
namespace {

using journal::Member;
using journal::MemberKind;

// Deadlines without which a step would have no end. The others have a step's own default.
constexpr auto needed_deadlines = std::to_array<std::string_view>(
    {"discovered", "identified", "credentialed", "graceful_off", "host_off", "staged", "inspected",
     "firmware_row", "firmware", "configured", "shelf_on", "standby", "ingested", "cooled", "powered",
     "nvlink_ready", "validated", "rack_validated"});
constexpr std::int64_t stroke_least_ms = 10,
                       stroke_most_ms = 120'000;  // what the interlock plans a trip with
constexpr int fast_reports_limit = 2;             // per BMC: one budget for all readers

class reporter {
 public:
  reporter(const std::string& file, std::vector<spec_error>& errors) : file_(file), errors_(errors) {}
  void operator()(std::string key_path, std::string message) const {
    errors_.push_back({file_, std::move(key_path), std::move(message)});
  }

 private:
  const std::string& file_;
  std::vector<spec_error>& errors_;
};

char letter_of(MemberKind kind) {
  switch (kind) {
    case journal::COMPUTE_TRAY:
      return 'c';
    case journal::SWITCH_TRAY:
      return 's';
    case journal::POWER_SHELF:
      return 'p';
    case journal::RACK_CONTROLLER:
      return 'm';
    case journal::MEMBER_KIND_UNSPECIFIED:
    case journal::MemberKind_INT_MIN_SENTINEL_DO_NOT_USE_:
    case journal::MemberKind_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return '\0';
}

bool is_slot_of(const std::string& slot, char letter) {
  return slot.size() == 3 && slot[0] == letter && slot[1] >= '0' && slot[1] <= '9' && slot[2] >= '0' &&
         slot[2] <= '9' && slot != std::string{letter, '0', '0'};
}

// Names the first row that has the same value; an empty value is nobody's.
class uniqueness {
 public:
  uniqueness(std::string list, std::string key) : list_(std::move(list)), key_(std::move(key)) {}
  void check(const std::string& value, int index, const reporter& report) {
    if (value.empty()) return;
    const auto [first, added] = seen_.emplace(value, index);
    if (added) return;
    report(fmt::format("{}[{}].{}", list_, index, key_),
           fmt::format("{} is already that of {}[{}]", value, list_, first->second));
  }

 private:
  std::string list_;
  std::string key_;
  std::map<std::string, int> seen_;
};

template <class Texts>
void check_no_repeats(const Texts& texts, const std::string& path, const reporter& report) {
  std::set<std::string> seen;
  for (int i = 0; i < texts.size(); ++i) {
    if (!seen.insert(texts[i]).second)
      report(fmt::format("{}[{}]", path, i), fmt::format("'{}' is there twice", texts[i]));
  }
}

void check_members(const journal::Manifest& manifest, const reporter& report) {
  uniqueness slots("members", "slot");
  uniqueness macs("members", "bmc_mac");
  uniqueness serials("members", "serial");
  std::set<std::string> kinds;
  for (int i = 0; i < manifest.members_size(); ++i) {
    const Member& member = manifest.members(i);
    const char letter = letter_of(member.kind());
    if (letter != '\0') {
      kinds.insert(kind_name(member.kind()));
      if (!is_slot_of(member.slot(), letter) && !member.slot().empty()) {
        report(fmt::format("members[{}].slot", i),
               fmt::format("'{}' is not a slot of a {} ({}01 to {}99)", member.slot(),
                           kind_name(member.kind()), letter, letter));
      }
    }
    slots.check(member.slot(), i, report);
    macs.check(member.bmc_mac(), i, report);
    serials.check(member.serial(), i, report);
    if (member.address().empty() && manifest.discovery().lease_files().empty() &&
        manifest.discovery().ranges().empty()) {
      report(fmt::format("members[{}].address", i),
             "missing: the manifest names neither leases nor ranges to find it in");
    }
  }
  for (const std::string& kind : kinds) {
    if (!manifest.factory_logins().contains(kind)) {
      report("factory_logins." + kind, "missing: the manifest has members of this kind");
    }
  }
}

void check_login(const journal::FactoryLogin& login, const std::string& path, const reporter& report) {
  if (login.user().empty()) report(path + ".user", "'' is not a text: it is empty");
}

void check_logins(const journal::Manifest& manifest, const reporter& report) {
  const std::map<std::string, journal::FactoryLogin> logins(manifest.factory_logins().begin(),
                                                            manifest.factory_logins().end());
  for (const auto& [kind, login] : logins) check_login(login, "factory_logins." + kind, report);
  const journal::CoolingSpec& cooling = manifest.cooling();
  if (cooling.has_login()) check_login(cooling.login(), "cooling.login", report);
  if (cooling.has_interlock_login())
    check_login(cooling.interlock_login(), "cooling.interlock_login", report);
}

bool is_slot_declared(const journal::Manifest& manifest, const std::string& slot, MemberKind kind) {
  return std::any_of(manifest.members().begin(), manifest.members().end(), [&slot, kind](const Member& each) {
    return each.slot() == slot && each.kind() == kind;
  });
}

// What an outlet feeds is a member, or a name for people that does not look like one.
bool looks_like_a_slot(const std::string& name) {
  return std::string("cspm").find(name.empty() ? '?' : name[0]) != std::string::npos && name.size() == 3 &&
         is_slot_of(name, name[0]);
}

void check_valves(const journal::Manifest& manifest, const reporter& report) {
  constexpr double whole = 100;
  uniqueness names("valves", "name");
  std::map<std::string, int> connectors;  // of a controller
  for (int i = 0; i < manifest.valves_size(); ++i) {
    const journal::ValveSpec& valve = manifest.valves(i);
    const auto here = [i](const char* key) { return fmt::format("valves[{}].{}", i, key); };
    names.check(valve.name(), i, report);
    if (!valve.member().empty() && !is_slot_declared(manifest, valve.member(), journal::RACK_CONTROLLER)) {
      report(here("member"), fmt::format("'{}' is not a rack_controller of this manifest", valve.member()));
    }
    const std::int64_t stroke_ms = valve.stroke().seconds() * 1000 + valve.stroke().nanos() / 1'000'000;
    const bool given = stroke_ms != 0 || valve.stroke().nanos() != 0;  // zero is refused by its field's rule
    if (given && (stroke_ms < stroke_least_ms || stroke_ms > stroke_most_ms))
      report(here("stroke"), "is not within 10ms and 120s");
    const std::string connector = valve.connector().empty() ? valve.name() : valve.connector();
    const auto [first, added] = connectors.emplace(valve.member() + "/" + connector, i);
    if (!added && !connector.empty() && manifest.valves(first->second).name() != valve.name()) {
      report(here("connector"),
             fmt::format("{} of {} is already valves[{}]", connector, valve.member(), first->second));
    }
    for (const auto& [key, percent] : {std::pair{"least_percent", valve.least_percent()},
                                       std::pair{"most_percent", valve.most_percent()}}) {
      if (percent > whole) report(here(key), fmt::format("{} is above 100", percent));
    }
    const double most = valve.most_percent() == 0 ? whole : valve.most_percent();
    if (valve.least_percent() > most) report(here("least_percent"), "is above most_percent");
  }
}

void check_pdus(const journal::Manifest& manifest, const reporter& report) {
  uniqueness names("pdus", "name");
  for (int i = 0; i < manifest.pdus_size(); ++i) {
    const journal::PduSpec& pdu = manifest.pdus(i);
    const auto here = [i](const std::string& key) { return fmt::format("pdus[{}].{}", i, key); };
    names.check(pdu.name(), i, report);
    if (!pdu.name().empty() && !is_slot_of(pdu.name(), 'u'))
      report(here("name"), fmt::format("'{}' is not the name of a PDU (u01 to u99)", pdu.name()));
    const bool snmp = pdu.protocol() == "snmp";
    if (snmp && pdu.dialect().empty()) report(here("dialect"), "missing: over snmp its MIB must be named");
    if (pdu.protocol() == "redfish" && !pdu.dialect().empty())
      report(here("dialect"), "is of snmp; over redfish there is none");
    if (pdu.has_login() && !snmp) check_login(pdu.login(), here("login"), report);
    uniqueness ids(here("outlets"), "id");
    for (int j = 0; j < pdu.outlets_size(); ++j) {
      const journal::OutletSpec& outlet = pdu.outlets(j);
      ids.check(outlet.id(), j, report);
      const bool known = std::any_of(manifest.members().begin(), manifest.members().end(),
                                     [&outlet](const Member& each) { return each.slot() == outlet.feeds(); });
      if (looks_like_a_slot(outlet.feeds()) && !known) {
        report(fmt::format("pdus[{}].outlets[{}].feeds", i, j),
               fmt::format("'{}' is no member of this manifest", outlet.feeds()));
      }
    }
  }
}

void check_caps(const journal::Manifest& manifest, const reporter& report) {
  const journal::PowerSpec& power = manifest.power();
  const bool one_alone = (power.gpu_cap_min_w() == 0) != (power.gpu_cap_max_w() == 0);
  if (one_alone)
    report(power.gpu_cap_min_w() == 0 ? "power.gpu_cap_min_w" : "power.gpu_cap_max_w",
           "missing: caps need both a least and a most");
  if (!one_alone && power.gpu_cap_min_w() > power.gpu_cap_max_w())
    report("power.gpu_cap_min_w", "is above gpu_cap_max_w");
  const std::map<std::string, std::int32_t> priorities(power.cap_priority().begin(),
                                                       power.cap_priority().end());
  for (const auto& [slot, priority] : priorities) {
    if (!is_slot_declared(manifest, slot, journal::COMPUTE_TRAY))
      report("power.cap_priority." + slot, fmt::format("'{}' is no compute tray of this manifest", slot));
  }
}

bool is_silent(const journal::MetricRule& rule) {
  return rule.min().empty() && rule.max().empty() && rule.equal().empty();
}

}  // namespace

std::string kind_name(MemberKind kind) {
  return lower_case(journal::MemberKind_Name(kind));
}

void check_manifest(const journal::Manifest& manifest, const std::string& file,
                    std::vector<spec_error>& errors) {
  const reporter report(file, errors);
  if (is_cdu_name(manifest.rack()) || is_plant_name(manifest.rack()))
    report("rack", fmt::format("'{}' would be taken for a CDU or a plant", manifest.rack()));
  check_no_repeats(manifest.gates(), "gates", report);
  check_members(manifest, report);
  check_logins(manifest, report);
  check_valves(manifest, report);
  check_pdus(manifest, report);
  check_caps(manifest, report);
  const auto& cooling = manifest.cooling();
  check_no_repeats(cooling.detectors(), "cooling.detectors", report);
  constexpr std::size_t longest_device = 31;  // of the interlock's record
  if (cooling.cdu().size() > longest_device)
    report("cooling.cdu", fmt::format("'{}' is longer than {} letters", cooling.cdu(), longest_device));
  if (cooling.dp_max_kpa() < cooling.dp_min_kpa() || (manifest.has_cooling() && cooling.dp_max_kpa() == 0)) {
    report("cooling.dp_kpa", "the second number must be above the first");
  }
  const auto& power = manifest.power();
  if (power.inrush_per_tray_a() > power.inrush_limit_a()) {
    report("power.inrush_per_tray_a", "is above inrush_limit_a: no tray could ever be powered");
  }
}

void check_sku(const journal::Sku& sku, const std::string& file, std::vector<spec_error>& errors) {
  const reporter report(file, errors);
  const auto& rack = sku.rack();
  if (rack.compute_min() > rack.compute()) report("rack.compute_min", "is above rack.compute");
  const std::uint64_t gpus = std::uint64_t{rack.compute()} * sku.compute_tray().gpus().count();
  if (sku.has_rack() && sku.has_compute_tray() && rack.gpus() != gpus) {
    report("rack.gpus",
           fmt::format("is {}, but rack.compute x compute_tray.gpus.count is {}", rack.gpus(), gpus));
  }
  if (sku.has_compute_tray() && sku.compute_tray().gpus().count() == 0) {
    report("compute_tray.gpus.count", "must be greater than zero");
  }
  // A liquid-cooled tray without a detector could never be known to be dry.
  if (sku.has_compute_tray() && sku.compute_tray().leak_detectors().empty()) {
    report("compute_tray.leak_detectors", "names no detector");
  }
  if (sku.has_switch_tray() && sku.switch_tray().leak_detectors().empty()) {
    report("switch_tray.leak_detectors", "names no detector");
  }
  check_no_repeats(sku.compute_tray().leak_detectors(), "compute_tray.leak_detectors", report);
  check_no_repeats(sku.switch_tray().leak_detectors(), "switch_tray.leak_detectors", report);
}

void check_baseline(const journal::Baseline& baseline, const std::string& file,
                    std::vector<spec_error>& errors) {
  const reporter report(file, errors);
  for (const std::string_view name : needed_deadlines) {
    if (!baseline.deadlines().contains(std::string(name)))
      report(fmt::format("deadlines.{}", name), "missing");
  }
  const std::map<std::string, journal::FirmwareRows> firmware(baseline.firmware().begin(),
                                                              baseline.firmware().end());
  for (const auto& [kind, rows] : firmware) {
    uniqueness orders("firmware." + kind, "order");
    uniqueness components("firmware." + kind, "component");
    for (int i = 0; i < rows.rows_size(); ++i) {
      if (rows.rows(i).order() != 0) orders.check(std::to_string(rows.rows(i).order()), i, report);
      components.check(rows.rows(i).component(), i, report);
    }
  }
  const std::map<std::string, journal::TelemetryPlan> telemetry(baseline.telemetry().begin(),
                                                                baseline.telemetry().end());
  for (const auto& [kind, plan] : telemetry) {
    check_no_repeats(plan.fast(), "telemetry." + kind + ".fast", report);
    if (plan.fast_size() > fast_reports_limit) {
      report("telemetry." + kind + ".fast",
             fmt::format("at most {} reports can be fast", fast_reports_limit));
    }
  }
}

void check_suite(const journal::Suite& suite, const std::string& file, std::vector<spec_error>& errors) {
  const reporter report(file, errors);
  if (suite.tests().empty()) report("tests", "a suite without tests proves nothing");
  uniqueness tests("tests", "name");
  for (int i = 0; i < suite.tests_size(); ++i) {
    const journal::SuiteTest& test = suite.tests(i);
    const std::string metrics = fmt::format("tests[{}].metrics", i);
    tests.check(test.name(), i, report);
    if (test.metrics().empty()) report(metrics, "a test without metrics proves nothing");
    uniqueness names(metrics, "name");
    for (int j = 0; j < test.metrics_size(); ++j) {
      names.check(test.metrics(j).name(), j, report);
      if (is_silent(test.metrics(j))) {
        report(fmt::format("{}[{}]", metrics, j), "has none of min, max, equal: it could not fail");
      }
    }
  }
}

void check_members_against_sku(const journal::Manifest& manifest, const journal::Sku& sku,
                               const std::string& file, std::vector<spec_error>& errors) {
  std::map<MemberKind, std::uint32_t> counts;
  for (const Member& member : manifest.members()) {
    if (member.kind() == journal::MEMBER_KIND_UNSPECIFIED) return;  // reported already; a count would mislead
    ++counts[member.kind()];
  }
  const auto compare = [&counts, &file, &errors, &sku](MemberKind kind, std::uint32_t least,
                                                       std::uint32_t most) {
    const std::uint32_t count = counts[kind];
    if (count >= least && count <= most) return;
    const std::string wanted = least == most ? std::to_string(most) : fmt::format("{} to {}", least, most);
    errors.push_back(
        {file, "members",
         fmt::format("{} of kind {}, SKU {} has {}", count, kind_name(kind), sku.name(), wanted)});
  };
  compare(journal::COMPUTE_TRAY, sku.rack().compute_min(), sku.rack().compute());
  compare(journal::SWITCH_TRAY, sku.rack().switch_(), sku.rack().switch_());
  compare(journal::POWER_SHELF, sku.rack().shelf(), sku.rack().shelf());
}

void check_suite_against_sku(const journal::Suite& suite, const std::string& sku, const std::string& file,
                             std::vector<spec_error>& errors) {
  const auto lacks = [&sku](const auto& limits) {
    return !limits.empty() && !limits.contains("") && !limits.contains(sku);
  };
  for (int i = 0; i < suite.tests_size(); ++i) {
    for (int j = 0; j < suite.tests(i).metrics_size(); ++j) {
      const auto& rule = suite.tests(i).metrics(j);
      const std::string path = fmt::format("tests[{}].metrics[{}]", i, j);
      if (lacks(rule.min()))
        errors.push_back({file, path + ".min", fmt::format("has no limit for SKU {}", sku)});
      if (lacks(rule.max()))
        errors.push_back({file, path + ".max", fmt::format("has no limit for SKU {}", sku)});
    }
  }
}

}  // namespace busbar::manifest
