// False trips and missed leaks of the interlock, in numbers: the real decoders fed with the bytes that
// devices send, the real logic, a virtual clock; and fewer of the same against the running programs.
//
//   logic_faults  faults of one detector, each watched for 4 s; false_trips of them that opened a trip
//   logic_leaks   leaks, each beside a faulty detector of the same tray; missed of them that opened none
//   within
//                 its sensor's delay, confirm time and two polls
//   wire_faults, wire_leaks  the same on the wire (interlock_wire.cpp): each fault watched for 2 s, each leak
//                 shown within 4 s; their false trips and missed leaks are in the sums
// With a count of zero in n tries the rate is below 3 / n with 95 % confidence; the bound is printed.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <filesystem>

#include "daemon/interlock/device_bodies.hpp"
#include "daemon/interlock/device_walk.hpp"
#include "daemon/interlock/interlock_logic.hpp"
#include "tests/bench/interlock_wire.hpp"

namespace {

using namespace busbar::interlock;

constexpr std::int64_t poll_ms = 250;
constexpr std::int64_t fault_watch_ms = 4'000;
constexpr int faults_wanted = 102'000;
constexpr int leaks_wanted = 10'200;
constexpr std::array<std::string_view, 4> names{"0_ColdPlate", "0_Manifold", "1_ColdPlate", "1_Manifold"};
const std::string list_path = "/redfish/v1/Chassis/Chassis_0/ThermalSubsystem/LeakDetection/LeakDetectors";

enum class fault {
  absent,
  unavailable,
  disabled,
  stale,
  frozen,
  out_of_range,
  rope_break,
  rope_short,
  wrong_type,
  flapping,
  bus_lost,
  contradiction,
  count
};
constexpr std::array<std::string_view, static_cast<std::size_t>(fault::count)> fault_names{
    "absent",     "unavailable", "disabled",   "stale",    "frozen",   "out_of_range",
    "rope_break", "rope_short",  "wrong_type", "flapping", "bus_lost", "contradiction"};

// A compute tray's detectors as Redfish bodies; one may be faulty and one may be wet.
class tray {
 public:
  explicit tray(std::mt19937_64& random) : random_(random) {}

  int faulty = -1;
  fault kind = fault::absent;
  int wet = -1;
  std::int64_t wet_from_ms = INT64_MAX;
  int confirm_ms = 500;

  // status 0: no answer
  http_response serve(const std::string& path, std::int64_t now_ms) {
    http_response response;
    response.status = 200;
    if (path.rfind("/redfish/v1/SessionService", 0) == 0) {
      response.status = 201;
      response.token = "t";
      response.location = "/redfish/v1/SessionService/Sessions/1";
      return response;
    }
    const bool lost = faulty >= 0 && kind == fault::bus_lost && now_ms % 1'500 < 1'000;
    const bool stale = faulty >= 0 && kind == fault::stale && now_ms > 1'000;
    if (searched_ && (lost || stale)) response.status = 0;
    response.body = body(path, now_ms);
    if (response.body.empty()) response.status = 404;
    return response;
  }
  void searched() { searched_ = true; }

 private:
  std::string body(const std::string& path, std::int64_t now_ms) {
    if (path == "/redfish/v1/")
      return R"({"Links":{"Sessions":{"@odata.id":"/redfish/v1/SessionService/Sessions"}},"Chassis":{"@odata.id":"/redfish/v1/Chassis"},"ProtocolFeaturesSupported":{"ExpandQuery":{"NoLinks":true}}})";
    if (path == "/redfish/v1/Chassis")
      return R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/Chassis_0"}]})";
    if (path == "/redfish/v1/Chassis/Chassis_0")
      return R"({"ThermalSubsystem":{"@odata.id":"/redfish/v1/Chassis/Chassis_0/ThermalSubsystem"},"Sensors":{"@odata.id":"/redfish/v1/Chassis/Chassis_0/Sensors"}})";
    if (path == "/redfish/v1/Chassis/Chassis_0/ThermalSubsystem")
      return R"({"LeakDetection":{"@odata.id":"/redfish/v1/Chassis/Chassis_0/ThermalSubsystem/LeakDetection"}})";
    if (path == "/redfish/v1/Chassis/Chassis_0/ThermalSubsystem/LeakDetection")
      return R"({"LeakDetectors":{"@odata.id":")" + list_path + R"("}})";
    if (path == list_path) return collection(list_path);
    if (path == "/redfish/v1/Chassis/Chassis_0/Sensors")
      return collection("/redfish/v1/Chassis/Chassis_0/Sensors");
    if (path.rfind(list_path + "?", 0) == 0) return group(now_ms);
    for (int index = 0; index < 4; ++index) {
      const std::string id = id_of(index);
      if (path == list_path + "/" + id) return detector(index, now_ms);
      if (path == "/redfish/v1/Chassis/Chassis_0/Sensors/" + id) return sensor(index, now_ms);
    }
    return {};
  }

  static std::string id_of(int index) {
    return "Chassis_0_LeakDetector_" + std::string(names[static_cast<std::size_t>(index)]);
  }
  static std::string collection(const std::string& path) {
    std::string members;
    for (int index = 0; index < 4; ++index)
      members += (index == 0 ? "" : ",") + fmt::format(R"({{"@odata.id":"{}/{}"}})", path, id_of(index));
    return R"({"Members":[)" + members + "]}";
  }
  std::string group(std::int64_t now_ms) {
    std::string members;
    for (int index = 0; index < 4; ++index) {
      const std::string text = detector(index, now_ms);
      if (!text.empty()) members += (members.empty() ? "" : ",") + text;
    }
    return R"({"Members":[)" + members + "]}";
  }

  bool is_wet(int index, std::int64_t now_ms) const { return index == wet && now_ms >= wet_from_ms; }
  // Shorter than the confirm time, however it falls on the polls.
  bool flaps(std::int64_t now_ms) const { return now_ms % (confirm_ms + 700) < confirm_ms - 50; }

  std::string detector(int index, std::int64_t now_ms) {
    std::string word = R"("OK")";
    std::string state = "Enabled";
    std::string health = "OK";
    if (is_wet(index, now_ms)) word = R"("Critical")", health = "Critical";
    if (index == faulty) {
      const bool critical = random_() % 2 == 0;
      if (kind == fault::absent) state = "Absent", word = R"("Absent")";
      if (kind == fault::unavailable)
        state = "UnavailableOffline", word = critical ? R"("Critical")" : R"("Unavailable")";
      if (kind == fault::disabled) state = "Disabled", word = critical ? R"("Critical")" : R"("OK")";
      if (kind == fault::rope_break || kind == fault::rope_short) {
        word = critical ? R"("Critical")" : R"("Warning")";
        health = critical ? "Critical" : "Warning";
      }
      if (kind == fault::out_of_range) word = critical ? R"("Critical")" : R"("OK")";
      if (kind == fault::wrong_type) word = std::array{"3", "null", "[]", "true", R"("Hmm")"}[random_() % 5];
      if (kind == fault::flapping && flaps(now_ms)) word = R"("Critical")", health = "Critical";
      if (kind == fault::contradiction)
        word = R"("Critical")", health = "Critical", state = critical ? "Degraded" : "Enabled";
    }
    return fmt::format(
        R"({{"@odata.id":"{}/{}","Id":"{}","DetectorState":{},"Status":{{"State":"{}","Health":"{}"}}}})",
        list_path, id_of(index), id_of(index), word, state, health);
  }

  std::string sensor(int index, std::int64_t now_ms) {
    const double noise = static_cast<double>(random_() % 100) * 1e-4;
    std::string volts = fmt::format("{:.4f}", is_wet(index, now_ms) ? 1.2 + noise : 1.733 + noise);
    if (index == faulty) {
      if (kind == fault::rope_break) volts = "3.3";
      if (kind == fault::rope_short) volts = "0.0";
      if (kind == fault::out_of_range) volts = std::array{"-4.0", "99.0", "1e9", "0"}[random_() % 4];
      if (kind == fault::wrong_type)
        volts = std::array{R"("1.2")", "null", "[1.2]", R"("N/A")"}[random_() % 4];
      if (kind == fault::flapping && flaps(now_ms)) volts = "1.2";
      if (kind == fault::frozen) volts = "1.7330";
    }
    return fmt::format(
        R"({{"Id":"{}","Reading":{},"ReadingRangeMin":0.1,"ReadingRangeMax":3.0,"Status":{{"State":"Enabled"}},"Thresholds":{{"LowerCritical":{{"Reading":1.617}}}}}})",
        id_of(index), volts);
  }

  std::mt19937_64& random_;
  bool searched_ = false;
};

ArmingRecord record_of(int confirm_ms) {
  ArmingRecord record;
  record.set_rack("r01");
  record.set_generation(1);
  ArmedDevice* device = record.add_devices();
  device->set_name("r01/c01");
  device->set_kind("compute_tray");
  device->set_address("127.0.0.1:1");
  device->set_pin_sha256(std::string(64, 'a'));
  device->set_account("a");
  device->set_password("p");
  for (const std::string_view name : names) {
    device->add_detectors(std::string(name));
    Confirm* row = device->add_confirm();
    row->set_detector(std::string(name));
    row->set_confirm_ms(confirm_ms);
  }
  return record;
}

// Polls as device_io does, on a virtual clock, until a trip opens or the time is over. Milliseconds of the
// trip.
std::int64_t tripped_at(tray& of, std::int64_t until_ms, std::mt19937_64& random) {
  state interlock;
  interlock.rack = "r01";
  const ArmingRecord record = record_of(of.confirm_ms);
  std::ignore = step(interlock, loaded{record, {}, {}, {}, 0}, 0);
  device_walk walk(record.devices(0), "");
  std::int64_t now_ms = 0;
  std::int64_t due_ms = 1;
  std::int64_t began_ms = 0;  // of the poll under way
  const auto feed = [&interlock, &due_ms, &now_ms](const event& what) {
    for (const effect& each : step(interlock, what, now_ms)) {
      if (std::holds_alternative<read_detectors>(each)) due_ms = now_ms;
    }
  };
  while (now_ms < until_ms) {
    if (due_ms > now_ms) {
      now_ms = std::min(due_ms, next_due_ms(interlock).value_or(due_ms));
      feed(tick{});
      if (due_ms > now_ms) continue;
    }
    if (std::exchange(due_ms, 0) != 0) began_ms = now_ms;
    now_ms += 5 + static_cast<std::int64_t>(random() % 20);  // the BMC's service time
    const http_response response = of.serve(walk.next().path, now_ms);
    if (response.status == 0) {
      walk.on_transport_failure();
      now_ms += 500;  // the request's time-out, shortened with the watch
      due_ms = now_ms + poll_ms;
      feed(poll_failed{"r01/c01", "no answer"});
      continue;
    }
    const auto news = walk.on(response);
    if (news == device_walk::news::failed) due_ms = now_ms + poll_ms;
    if (news != device_walk::news::poll_done) continue;
    of.searched();
    due_ms = now_ms + poll_ms;
    feed(detectors_read{"r01/c01", walk.readings(), now_ms - began_ms});
    if (!interlock.trip.open.empty()) return now_ms;
  }
  return -1;
}

// usage: bench_interlock [--raw DIR] [--wire-faults N] [--wire-leaks N] [--programs DIR]
struct arguments {
  std::string raw;
  std::string programs;
  int wire_faults = 2'000;
  int wire_leaks = 200;
};

arguments parse(int argc, char** argv) {
  arguments of;
  for (int at = 1; at + 1 < argc; at += 2) {
    const std::string_view name = argv[at];
    if (name == "--raw") of.raw = argv[at + 1];
    if (name == "--programs") of.programs = argv[at + 1];
    if (name == "--wire-faults") of.wire_faults = std::atoi(argv[at + 1]);
    if (name == "--wire-leaks") of.wire_leaks = std::atoi(argv[at + 1]);
  }
  if (of.programs.empty()) of.programs = std::filesystem::canonical("/proc/self/exe").parent_path().string();
  return of;
}

struct logic_counts {
  int false_trips = 0;
  int missed = 0;
  std::int64_t worst_ms = 0;
};

int confirm_of(fault kind, std::mt19937_64& random) {
  return kind == fault::flapping ? 300 + static_cast<int>(random() % 1'500)
                                 : static_cast<int>(random() % 1'000);
}

void count_faults(std::mt19937_64& random, std::ostream& rows, logic_counts& counts) {
  std::map<std::string_view, int> tries;
  for (int n = 0; n < faults_wanted; ++n) {
    tray of(random);
    of.faulty = static_cast<int>(random() % 4);
    of.kind = static_cast<fault>(n % static_cast<int>(fault::count));
    of.confirm_ms = confirm_of(of.kind, random);
    const std::int64_t at = tripped_at(of, fault_watch_ms, random);
    const std::string_view name = fault_names[static_cast<std::size_t>(of.kind)];
    ++tries[name];
    counts.false_trips += at >= 0 ? 1 : 0;
    if (at >= 0)
      std::fprintf(stderr, "FALSE TRIP: %s confirm %d at %lld ms\n", std::string(name).c_str(), of.confirm_ms,
                   static_cast<long long>(at));
    rows << "fault," << name << ',' << of.confirm_ms << ',' << at << ",-1\n";
  }
  for (const auto& [name, count] : tries) std::printf("%-14s %6d faults\n", std::string(name).c_str(), count);
}

void count_leaks(std::mt19937_64& random, std::ostream& rows, logic_counts& counts) {
  for (int n = 0; n < leaks_wanted; ++n) {
    tray of(random);
    of.faulty = static_cast<int>(random() % 4);
    // A bus that is lost takes every detector of its tray along: another tray's, or the CDU's, see such a
    // leak.
    do of.kind = static_cast<fault>(random() % static_cast<unsigned>(fault::count));
    while (of.kind == fault::bus_lost || of.kind == fault::stale);
    do of.wet = static_cast<int>(random() % 4);
    while (of.wet == of.faulty);
    of.confirm_ms = confirm_of(of.kind, random);
    of.wet_from_ms = 500 + static_cast<std::int64_t>(random() % 2'500);  // leak and the sensor's own delay
    const std::int64_t allowed = of.wet_from_ms + of.confirm_ms + 1'000;
    const std::int64_t at = tripped_at(of, allowed, random);
    if (at >= 0) counts.worst_ms = std::max(counts.worst_ms, at - of.wet_from_ms - of.confirm_ms);
    counts.missed += at < of.wet_from_ms ? 1 : 0;
    rows << "leak," << fault_names[static_cast<std::size_t>(of.kind)] << ',' << of.confirm_ms << ',' << at
         << ',' << allowed << '\n';
  }
}

void print_bound(const char* what, int tries, int found, const char* verdict) {
  std::printf("%7d %s, %d %s: below %.1e each at 95 %%\n", tries, what, found, verdict,
              3.0 / std::max(1, tries));
}

}  // namespace

int main(int argc, char** argv) {
  const arguments wanted = parse(argc, argv);
  std::ofstream rows;
  std::ofstream wire_rows;
  if (!wanted.raw.empty()) rows.open(wanted.raw + "/interlock.csv");
  if (!wanted.raw.empty()) wire_rows.open(wanted.raw + "/interlock_wire.csv");
  rows << "what,fault,confirm_ms,tripped_ms,allowed_ms\n";
  std::mt19937_64 random(1);
  logic_counts logic;
  count_faults(random, rows, logic);
  count_leaks(random, rows, logic);
  busbar::bench::wire_counts wire;
  if (wanted.wire_faults + wanted.wire_leaks > 0)
    wire =
        busbar::bench::count_on_the_wire(wanted.programs, wanted.wire_faults, wanted.wire_leaks, &wire_rows);
  print_bound("faults in logic", faults_wanted, logic.false_trips, "false trips");
  print_bound("leaks in logic", leaks_wanted, logic.missed, "missed");
  print_bound("faults on the wire", wire.faults, wire.false_trips, "false trips");
  print_bound("leaks on the wire", wire.leaks, wire.missed, "missed");
  std::printf("%d of %d faults on the wire that last were shown unknown when their time was over\n",
              wire.shown, wire.lasting);
  std::printf("after wetting and confirm time at most %lld ms in logic, %.0f ms on the wire\n",
              static_cast<long long>(logic.worst_ms), wire.worst_ms);
  const int false_trips = logic.false_trips + wire.false_trips;
  const int missed = logic.missed + wire.missed;
  std::printf(
      "%s\n",
      fmt::format(R"({{"logic_faults":{},"wire_faults":{},"false_trips":{},"logic_leaks":{},"wire_leaks":{},)"
                  R"("missed":{},"fault_bound":{:.2e},"leak_bound":{:.2e},"wire_fault_bound":{:.2e},)"
                  R"("wire_leak_bound":{:.2e},"realtime":{}}})",
                  faults_wanted, wire.faults, false_trips, leaks_wanted, wire.leaks, missed,
                  3.0 / faults_wanted, 3.0 / leaks_wanted, 3.0 / std::max(1, wire.faults),
                  3.0 / std::max(1, wire.leaks), wire.realtime)
          .c_str());
  // Faults that the interlock does not see prove nothing; one in twenty may come too late on a busy host.
  const bool seen = wire.shown * 20 >= wire.lasting * 19;
  return false_trips == 0 && missed == 0 && seen ? 0 : 1;
}
