// Reaction to water, at the wire: busbar-sim with two whole racks, a busbar-interlock for each as it is
// installed; beside them readers of telemetry, a bring-up of a third rack, an alarm storm and a busy thread a
// core. Times are the simulator's stamps of CLOCK_MONOTONIC, never the interlock's word, except for the ends
// of a trip, which are when its heartbeat shows them.
//
//   first_forceoff_p99_ms    last byte of the evidence written (the reading that made the verdict) -> first
//                            ForceOff received
//   all_trays_p99_ms         the same -> the last tray's first ForceOff received; rack trips
//   polled_over_interval_ms  water -> ForceOff received at a device without leak events (the CDU), less the
//                            interval that the interlock said and the service time of the read; p99
//   tray_off_p99_s           evidence -> the tray was read off; tray trips
//   isolated_p99_s           evidence -> trays off, shelves cut, valves closed, all read back; rack trips
//
// usage: bench_leak [--trips N] [--rack-trips N] [--profile instant|quick] [--quiet] [--raw DIR]
//                   [--programs DIR] [--rest SECONDS]
// --quiet: nothing beside. --rest: no trips, but what the interlocks cost while nothing happens.
#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/bench/bench_load.hpp"
#include "tests/bench/interlock_rig.hpp"

namespace {

using namespace busbar::interlock;
using namespace busbar::bench;
namespace fs = std::filesystem;

constexpr double normal_alarms_per_s = 1;  // of each event stream; the storm is ten times that
constexpr std::int64_t written_late_ns = 2'000 * ms;

struct trip_row {
  bool rack = false;
  std::string source;
  std::int64_t edge = 0;
  std::int64_t event = 0;  // written; 0: the device told no event
  std::int64_t seen = 0;
  std::int64_t first_off = 0;
  std::int64_t last_off = 0;
  std::int64_t done = 0;
  std::int64_t service = 0;  // of the read that saw it
  std::int64_t interval = 0;
};

struct arguments {
  int trips = 900;
  int rack_trips = 100;
  int rest_s = 0;
  bool quiet = false;
  std::string profile = "instant";
  std::string raw;
  std::string programs;
};

bool is_detector_read(const wire_row& row, const std::string& source) {
  const bool path =
      row.path.find("LeakDetector") != std::string::npos || row.path.find("/Sensors") != std::string::npos;
  return row.number != 0 && row.device == source && row.act.empty() && path;
}

// First ForceOff of each tray of the rack.
std::map<std::string, std::int64_t> first_offs(const std::vector<wire_row>& rows, const std::string& rack) {
  std::map<std::string, std::int64_t> first;
  for (const wire_row& row : rows) {
    const bool tray = row.device.starts_with(rack + "/c") || row.device.starts_with(rack + "/s");
    if (!tray || row.act != "reset" || row.argument != "ForceOff") continue;
    const auto [at, fresh] = first.emplace(row.device, row.received);
    if (!fresh) at->second = std::min(at->second, row.received);
  }
  return first;
}

// The evidence is the last read of the source's detectors that was answered before the first ForceOff.
bool measure(interlock_rig& rig, rack_rig& rack, const std::string& address, trip_row& of) {
  const std::string prefix = of.rack ? "" : of.source;
  auto rows = rig.journal().since(of.edge - 3'000 * ms, prefix);
  std::erase_if(rows, [&of](const wire_row& row) {
    return row.received < of.edge && row.written != 0 && row.written < of.edge;
  });
  const auto first = first_offs(rows, rack.name());
  if (first.empty()) give_up("no ForceOff in the journal of " + rack.name());
  if (of.rack && first.size() != rack_rig::trays)
    give_up(fmt::format("{} of {} trays of {} were turned off", first.size(), rack_rig::trays, rack.name()));
  of.first_off = INT64_MAX;
  for (const auto& [device, at] : first) {
    of.first_off = std::min(of.first_off, at);
    of.last_off = std::max(of.last_off, at);
  }
  const wire_row* evidence = nullptr;
  for (const wire_row& row : rows) {
    if (row.number == 0 && row.address == address && of.event == 0 &&
        row.path.find("Leak") != std::string::npos)
      of.event = row.written;
    if (!is_detector_read(row, of.source) || row.received > of.first_off) continue;
    // The simulator notes when it wrote a reply after the request: it may not stand there yet.
    if (row.written == 0) return false;
    if (row.written > of.first_off) continue;
    if (evidence == nullptr || row.written > evidence->written) evidence = &row;
  }
  if (evidence == nullptr) return false;
  of.seen = evidence->written;
  of.service = evidence->written - std::max(evidence->received, of.edge);
  of.interval = rack.link().interval_ns(of.source, evidence->received);
  return true;
}

trip_row one_trip(interlock_rig& rig, rack_rig& rack, bool whole, int index) {
  trip_row of;
  of.rack = whole;
  of.source = whole ? "cdu01" : rack.tray_name(index);
  const auto detectors = rack_rig::detectors_of(index);
  const std::string target =
      whole ? rack.rope() : of.source + "/" + detectors[static_cast<std::size_t>(index * 7 % 4)];
  const std::string scope = whole ? rack.name() : of.source;
  rack.until_ready();
  ::usleep(static_cast<unsigned>((index * 7919) % 251 * 1000));  // somewhere in the poll's interval
  of.edge = rack.wet(target);
  of.done = rack.link().until("the end of the trip of " + scope, [&scope](const Status& status) {
    return std::any_of(status.open_trips().begin(), status.open_trips().end(),
                       [&scope](const TripStatus& each) { return each.scope() == scope && each.closed(); });
  });
  rack.clear("leak", target);
  const std::string address = whole ? rig.options().network + ".200.1" : rack.address_of(index);
  const std::int64_t end = now_ns() + written_late_ns;
  while (!measure(rig, rack, address, of)) {
    if (now_ns() > end) give_up("the journal does not say when the evidence was written: " + of.source);
    ::usleep(20'000);
  }
  if (whole) rack.power_up();
  rack.reset(scope);
  if (whole) {
    rack.until_ready();
    rack.hosts_on();
  } else {
    rack.hosts_on({index});
  }
  return of;
}

std::vector<trip_row> all_trips(interlock_rig& rig, const arguments& wanted) {
  std::vector<std::vector<trip_row>> found(rig.racks().size());
  std::vector<std::thread> drivers;
  std::atomic<int> finished{0};
  const auto racks = static_cast<int>(rig.racks().size());
  for (int n = 0; n < racks; ++n) {
    drivers.emplace_back([&rig, &wanted, &found, &finished, n, racks] {
      rack_rig& rack = *rig.racks()[static_cast<std::size_t>(n)];
      const int trays = wanted.trips / racks + (n < wanted.trips % racks ? 1 : 0);
      const int wholes = wanted.rack_trips / racks + (n < wanted.rack_trips % racks ? 1 : 0);
      for (int index = 0, done = 0; index < trays + wholes; ++index) {
        // Rack trips spread evenly among those of trays.
        const bool whole = done * (trays + wholes) <= index * wholes && done < wholes;
        done += whole ? 1 : 0;
        const int tray = (index * 5 + n) % rack_rig::trays;
        found[static_cast<std::size_t>(n)].push_back(one_trip(rig, rack, whole, tray));
        if (++finished % 50 == 0) std::fprintf(stderr, "%d trips\n", finished.load());
      }
    });
  }
  for (std::thread& each : drivers) each.join();
  std::vector<trip_row> all;
  for (const auto& each : found) all.insert(all.end(), each.begin(), each.end());
  return all;
}

void start_storm(interlock_rig& rig) {
  for (auto& rack : rig.racks()) {
    for (int index = 0; index < rack_rig::trays; ++index)
      rack->fault("event_storm", rack->tray_name(index), {{"severity", 10 * normal_alarms_per_s}});
    for (int n = 1; n <= 8; ++n) {
      rack->fault("event_storm", fmt::format("{}/p{:02}", rack->name(), n),
                  {{"severity", 10 * normal_alarms_per_s}});
    }
  }
  rig.racks().front()->fault("event_storm", "cdu01", {{"severity", 10 * normal_alarms_per_s}});
}

void write_raw(const std::string& folder, const std::vector<trip_row>& all) {
  std::ofstream rows(folder + "/leak.csv");
  rows << "rack,source,edge_ns,event_ns,seen_ns,first_off_ns,last_off_ns,done_ns,service_ns,interval_ns\n";
  for (const trip_row& each : all) {
    rows << fmt::format("{},{},{},{},{},{},{},{},{},{}\n", each.rack, each.source, each.edge, each.event,
                        each.seen, each.first_off, each.last_off, each.done, each.service, each.interval);
  }
}

void report(const std::vector<trip_row>& all, const std::string& conditions, bool realtime, int stroke_ms) {
  std::vector<double> first, every, over, off, isolated, told;
  int rack_trips = 0;
  for (const trip_row& each : all) {
    const auto in_ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
    rack_trips += each.rack ? 1 : 0;
    first.push_back(in_ms(each.first_off - each.seen));
    if (each.event != 0) told.push_back(in_ms(each.first_off - each.event));
    if (each.rack) every.push_back(in_ms(each.last_off - each.seen));
    if (each.rack) over.push_back(in_ms(each.first_off - each.edge - each.interval - each.service));
    (each.rack ? isolated : off).push_back(in_ms(each.done - each.seen) / 1e3);
  }
  std::printf("%s", conditions.c_str());
  print_row("first ForceOff", first, "ms");
  print_row("all 27 trays", every, "ms");
  print_row("polled over interval", over, "ms");
  print_row("event -> ForceOff", told, "ms (the reads that confirm it included; no budget)");
  print_row("tray read off", off, "s");
  print_row("isolated", isolated, fmt::format("s (stroke {} s)", stroke_ms / 1000.0).c_str());
  std::printf(
      "%s\n",
      fmt::format(
          R"({{"trips":{},"rack_trips":{},"realtime":{},"first_forceoff_p99_ms":{:.3f},"all_trays_p99_ms":{:.3f},"polled_over_interval_ms":{:.3f},"tray_off_p99_s":{:.3f},"isolated_p99_s":{:.3f},"stroke_s":{}}})",
          all.size(), rack_trips, realtime, share_of(first, 0.99), share_of(every, 0.99),
          share_of(over, 0.99), share_of(off, 0.99), share_of(isolated, 0.99), stroke_ms / 1000.0)
          .c_str());
}

void at_rest(interlock_rig& rig, int seconds) {
  std::vector<double> before;
  for (auto& rack : rig.racks()) before.push_back(cpu_seconds(rack->interlock()));
  const std::int64_t begin = now_ns();
  ::sleep(static_cast<unsigned>(seconds));
  const double wall = static_cast<double>(now_ns() - begin) / 1e9;
  for (std::size_t n = 0; n < before.size(); ++n) {
    rack_rig& rack = *rig.racks()[n];
    std::map<std::string, int> kinds;
    for (const wire_row& row : rig.journal().since(now_ns() - 10'000 * ms, "")) {
      if (row.number != 0 && (row.device.starts_with(rack.name()) || row.device == "cdu01"))
        ++kinds[row.device == "cdu01" ? "cdu" : row.device.substr(4, 1)];
    }
    std::string requests;
    for (const auto& [kind, count] : kinds) requests += fmt::format(" {} {:.1f}/s", kind, count / 10.0);
    std::printf("%s: %.1f %% of a core, %.0f MiB; requests:%s\n", rack.name().c_str(),
                100 * (cpu_seconds(rack.interlock()) - before[n]) / wall, resident_mib(rack.interlock()),
                requests.c_str());
  }
}

arguments parse(int argc, char** argv) {
  arguments of;
  for (int at = 1; at < argc; ++at) {
    const std::string name = argv[at];
    if (name == "--quiet") of.quiet = true;
    if (at + 1 >= argc) break;
    if (name == "--trips") of.trips = std::atoi(argv[at + 1]);
    if (name == "--rack-trips") of.rack_trips = std::atoi(argv[at + 1]);
    if (name == "--rest") of.rest_s = std::atoi(argv[at + 1]);
    if (name == "--profile") of.profile = argv[at + 1];
    if (name == "--raw") of.raw = argv[at + 1];
    if (name == "--programs") of.programs = argv[at + 1];
  }
  return of;
}

}  // namespace

int main(int argc, char** argv) {
  arguments wanted = parse(argc, argv);
  const std::string own = fs::canonical("/proc/self/exe").parent_path().string();
  if (wanted.programs.empty()) wanted.programs = own;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  std::string pattern = (fs::temp_directory_path() / "bench-leak-XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  {
    interlock_rig rig({.programs = wanted.programs, .folder = folder, .profile = wanted.profile});
    if (wanted.rest_s > 0) {
      at_rest(rig, wanted.rest_s);
    } else {
      std::unique_ptr<telemetry_readers> telemetry;
      std::unique_ptr<bring_up_beside> beside;
      std::unique_ptr<busy_cores> busy;
      if (!wanted.quiet) {
        telemetry = std::make_unique<telemetry_readers>(rig);
        beside = std::make_unique<bring_up_beside>(own, folder + "/beside.log");
        start_storm(rig);
        busy = std::make_unique<busy_cores>();
      }
      const busy_share share;
      const std::int64_t begin = now_ns();
      const std::vector<trip_row> all = all_trips(rig, wanted);
      const double seconds = static_cast<double>(now_ns() - begin) / 1e9;
      const bool realtime = std::all_of(rig.racks().begin(), rig.racks().end(),
                                        [](const auto& each) { return each->link().last().realtime(); });
      std::string conditions = fmt::format(
          "{} trips in {:.0f} s, two racks, profile {}; cores {:.1f} % busy; real-time priority of the "
          "interlocks: {}; the simulator, which measures, runs at nice {}\n",
          all.size(), seconds, wanted.profile, 100 * share.now(), realtime ? "yes" : "NO",
          rig.simulator_nice());
      conditions += wanted.quiet
                        ? std::string("nothing beside\n")
                        : fmt::format(
                              "beside: {:.0f} metric reports/s read by the bench at busbard's pace, "
                              "{:.0f} alarms/s on {} event streams, {} bring-ups of another rack ({} "
                              "failed), a busy thread a core\n",
                              static_cast<double>(telemetry->reads()) / seconds,
                              10 * normal_alarms_per_s * (2 * 35 + 1), 2 * 35 + 1,
                              beside->done() + beside->failed(), beside->failed());
      if (!wanted.raw.empty()) write_raw(wanted.raw, all);
      report(all, conditions, realtime, rig.stroke_ms());
    }
  }
  fs::remove_all(folder);
  return 0;
}
