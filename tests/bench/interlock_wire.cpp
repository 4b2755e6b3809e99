#include "tests/bench/interlock_wire.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>

#include "tests/bench/interlock_rig.hpp"

namespace busbar::bench {
namespace {

using interlock::Status;
using interlock::TripStatus;

constexpr int confirm_ms = 500;
// A confirm time, a read beside an event stream, and as much again.
constexpr std::int64_t watched_ns = 2'000 * ms;
constexpr std::int64_t leak_limit_ns = 4'000 * ms;

constexpr std::array<const char*, 12> fault_names{
    "absent",     "unavailable", "disabled",   "stale",    "frozen",   "out_of_range",
    "rope_break", "rope_short",  "wrong_type", "flapping", "bus_lost", "contradiction"};

struct fault_on_wire {
  std::string kind;
  json more;
  bool of_the_bmc = false;
};

json word(const char* text) {
  return {{"value", text}};
}
json severity(double value) {
  return {{"severity", value}};
}

// What of the simulator makes this fault; picks among its forms.
std::vector<fault_on_wire> parts_of(std::string_view name, std::uint64_t pick) {
  const bool critical = pick % 2 == 0;
  const json said = word(critical ? "Critical" : "OK");
  if (name == "absent") return {{"detector_state", word("Absent")}, {"detector_word", word("Absent")}};
  if (name == "unavailable")
    return {{"detector_state", word("UnavailableOffline")},
            {"detector_word", word(critical ? "Critical" : "Unavailable")}};
  if (name == "disabled") return {{"detector_state", word("Disabled")}, {"detector_word", said}};
  if (name == "stale") return {{"slow_bmc", {{"severity", 60}, {"for", 800 * ms}}, true}};
  if (name == "frozen") return {{"detector_volts", severity(1.733)}};
  if (name == "out_of_range")
    return {{"detector_volts", severity(std::array{-4.0, 99.0, 1e9, 0.0}[pick / 2 % 4])},
            {"detector_word", said}};
  if (name == "rope_break" || name == "rope_short")
    return {{"detector_volts", severity(name == "rope_break" ? 3.3 : 0.0)},
            {"detector_word", word(critical ? "Critical" : "Warning")}};
  if (name == "wrong_type" && critical)
    return {{"detector_word", word(std::array{"3", "null", "[]", "true", "Hmm"}[pick / 2 % 5])}};
  if (name == "wrong_type")
    return {{"detector_volts", word(std::array{R"("1.2")", "null", "[1.2]", R"("N/A")"}[pick / 2 % 4])}};
  if (name == "flapping")
    return {{"leak", {{"for", (100 + static_cast<std::int64_t>(pick % 300)) * ms}}},
            {"leak", {{"at", 900 * ms}, {"for", 300 * ms}}}};
  if (name == "bus_lost")
    return {{"error_5xx", {{"value", "LeakDetection"}, {"severity", 1}, {"for", 900 * ms}}, true}};
  return {{"detector_fault", json::object()}};
}

struct try_row {
  std::string what;
  std::string fault;
  std::string tray;
  std::int64_t wet_ns = 0;
  std::int64_t tripped_ns = -1;
  bool lasting = false;
  bool shown = false;
};

// Frozen is dry, and stale, flapping and a lost bus are over when the look at the end comes.
bool lasts(std::string_view name) {
  return name != "frozen" && name != "stale" && name != "flapping" && name != "bus_lost";
}

bool shows_unknown(const Status& status, const std::string& tray) {
  for (const interlock::DeviceStatus& device : status.devices()) {
    if (device.name() != tray) continue;
    return std::any_of(device.detectors().begin(), device.detectors().end(),
                       [](const interlock::DetectorReading& each) {
                         return each.verdict() == interlock::DetectorReading::UNKNOWN;
                       });
  }
  return false;
}

class rack_counts {
 public:
  rack_counts(interlock_rig& rig, rack_rig& rack, std::uint64_t seed)
      : rig_(rig), rack_(rack), random_(seed) {}

  void faults(int wanted);
  void leaks(int wanted);
  std::vector<try_row> rows;

 private:
  std::string put(int tray, std::string_view name, std::size_t detector);
  void mend(const std::string& tray);

  interlock_rig& rig_;
  rack_rig& rack_;
  std::mt19937_64 random_;
};

std::string rack_counts::put(int tray, std::string_view name, std::size_t detector) {
  const auto detectors = rack_rig::detectors_of(tray);
  const std::string whole = rack_.tray_name(tray);
  for (const fault_on_wire& each : parts_of(name, random_()))
    rack_.fault(each.kind, each.of_the_bmc ? whole : whole + "/" + detectors[detector], each.more);
  return whole;
}

// A trip that should not have been: counted, and reset like any.
void rack_counts::mend(const std::string& tray) {
  rack_.reset(tray);
  rack_.hosts_on();
}

void rack_counts::faults(int wanted) {
  for (int done = 0, round = 0; done < wanted; ++round) {
    rack_.until_ready();
    const std::int64_t begin = now_ns();
    std::vector<try_row> tries;
    for (int tray = 0; tray < rack_rig::trays && done < wanted; ++tray, ++done) {
      const char* name = fault_names[static_cast<std::size_t>(tray + round) % fault_names.size()];
      tries.push_back({"fault", name, put(tray, name, random_() % 4)});
    }
    ::usleep(static_cast<unsigned>(watched_ns / 1000));
    // Its own word, and what reached the devices.
    std::map<std::string, std::int64_t> tripped;
    for (const wire_row& row : rig_.journal().since(begin, rack_.name()))
      if (row.act == "reset" && row.argument == "ForceOff") tripped.emplace(row.device, row.received);
    const Status last = rack_.link().last();
    for (const TripStatus& each : last.open_trips()) tripped.emplace(each.scope(), now_ns());
    for (try_row& each : tries) {
      each.lasting = lasts(each.fault);
      each.shown = shows_unknown(last, each.tray);
      const auto hit = tripped.find(each.tray);
      if (hit != tripped.end() || tripped.contains(rack_.name())) each.tripped_ns = now_ns();
      if (each.tripped_ns >= 0)
        std::fprintf(stderr, "FALSE TRIP: %s of %s\n", each.fault.c_str(), each.tray.c_str());
      rack_.clear("", each.tray);
      rows.push_back(each);
    }
    for (const TripStatus& each : last.open_trips()) mend(each.scope());
  }
}

void rack_counts::leaks(int wanted) {
  for (int n = 0; n < wanted; ++n) {
    rack_.until_ready();
    const int tray = n % rack_rig::trays;
    const std::size_t broken = random_() % 4;
    const std::size_t wet = (broken + 1 + random_() % 3) % 4;
    // Without a bus or an answer no detector of the tray says anything: another tray's see such a leak.
    std::string_view name;
    do name = fault_names[random_() % fault_names.size()];
    while (name == "stale" || name == "bus_lost");
    const std::string whole = put(tray, name, broken);
    ::usleep(static_cast<unsigned>(random_() % 700'000));
    try_row made{"leak", std::string(name), whole};
    made.wet_ns = rack_.wet(whole + "/" + rack_rig::detectors_of(tray)[wet]);
    const auto tripped = [&whole](const Status& status) {
      return std::any_of(status.open_trips().begin(), status.open_trips().end(),
                         [&whole](const TripStatus& each) { return each.scope() == whole; });
    };
    if (rack_.link().within(leak_limit_ns, tripped))
      made.tripped_ns = now_ns();
    else
      std::fprintf(stderr, "MISSED: a leak at %s beside %s\n", whole.c_str(), made.fault.c_str());
    rows.push_back(made);
    rack_.clear("", whole);
    if (made.tripped_ns < 0) continue;
    rack_.reset(whole);
    rack_.hosts_on({tray});
  }
}

}  // namespace

wire_counts count_on_the_wire(const std::string& programs, int faults, int leaks, std::ostream* rows) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  std::string pattern = (std::filesystem::temp_directory_path() / "bench-wire-XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  wire_counts counts;
  {
    interlock_rig rig(
        {.programs = programs, .folder = folder, .network = "127.31", .confirm_ms = confirm_ms});
    std::vector<std::unique_ptr<rack_counts>> all;
    std::vector<std::thread> drivers;
    const auto racks = static_cast<int>(rig.racks().size());
    for (int n = 0; n < racks; ++n) {
      all.push_back(std::make_unique<rack_counts>(rig, *rig.racks()[static_cast<std::size_t>(n)],
                                                  static_cast<std::uint64_t>(n + 1)));
      drivers.emplace_back([&all, n, racks, faults, leaks] {
        rack_counts& mine = *all[static_cast<std::size_t>(n)];
        mine.faults(faults / racks + (n < faults % racks ? 1 : 0));
        mine.leaks(leaks / racks + (n < leaks % racks ? 1 : 0));
      });
    }
    for (std::thread& each : drivers) each.join();
    counts.realtime = std::all_of(rig.racks().begin(), rig.racks().end(),
                                  [](const auto& each) { return each->link().last().realtime(); });
    if (rows != nullptr) *rows << "what,fault,tray,confirm_ms,wet_ns,tripped_ns,lasting,shown\n";
    for (const auto& rack : all) {
      for (const try_row& each : rack->rows) {
        const bool leak = each.what == "leak";
        (leak ? counts.leaks : counts.faults) += 1;
        counts.lasting += each.lasting ? 1 : 0;
        counts.shown += each.lasting && each.shown ? 1 : 0;
        counts.false_trips += !leak && each.tripped_ns >= 0 ? 1 : 0;
        counts.missed += leak && each.tripped_ns < 0 ? 1 : 0;
        if (leak && each.tripped_ns >= 0)
          counts.worst_ms = std::max(counts.worst_ms,
                                     static_cast<double>(each.tripped_ns - each.wet_ns) / 1e6 - confirm_ms);
        if (rows != nullptr)
          *rows << each.what << ',' << each.fault << ',' << each.tray << ',' << confirm_ms << ','
                << each.wet_ns << ',' << each.tripped_ns << ',' << each.lasting << ',' << each.shown << '\n';
      }
    }
  }
  std::filesystem::remove_all(folder);
  return counts;
}

}  // namespace busbar::bench
