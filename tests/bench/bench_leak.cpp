// Reaction to water, at the wire: busbar-sim with the devices of one rack, busbar-interlock as it is
// installed, every core busy. Times are the simulator's own stamps of CLOCK_MONOTONIC, never the interlock's
// word, except for the ends of a trip, which are when its heartbeat shows them.
//
//   first_forceoff_p99_ms     last byte of evidence written (the reading that made the verdict) -> first
//   ForceOff all_trays_p99_ms          the same -> the last tray's first ForceOff; rack trips
//   polled_over_interval_ms   leak -> ForceOff at a device without leak events (the CDU), less the poll
//   interval
//                             and the service time of the reads in between; p99
//   tray_off_p99_s            evidence -> the tray was read off; tray trips
//   isolated_p99_s            evidence -> trays off, shelves cut, valves closed, all read back; rack trips
//
// usage: bench_leak [--trips N] [--rack-trips N] [--raw DIR]
#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/rack/interlock_wire.hpp"
#include "busbar/interlock/interlock.pb.h"
#include "tests/bench/bench_programs.hpp"

namespace {

using namespace busbar::interlock;
using namespace busbar::bench;
namespace fs = std::filesystem;

constexpr std::int64_t ms = 1'000'000;
constexpr int stroke_ms = 5'000;
const std::string network = "127.29";

// The interlock's socket: requests, and the heartbeats in between.
class interlock_link {
 public:
  explicit interlock_link(const std::string& path) : fd_(connect_to(path)) {}
  ~interlock_link() { ::close(fd_); }

  Answer ask(Request request) {
    request.set_request_id(++id_);
    const std::string bytes = encode_frame(request);
    if (::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) give_up("the interlock is gone");
    for (;;) {
      const Frame frame = next();
      if (frame.has_status()) last = frame.status();
      if (frame.has_answer() && frame.answer().request_id() == id_) return frame.answer();
    }
  }
  // When it was so, by this clock.
  template <class Wanted>
  std::int64_t until(const char* what, Wanted wanted) {
    const std::int64_t deadline = now_ns() + 120'000 * ms;
    while (now_ns() < deadline) {
      const Frame frame = next();
      if (!frame.has_status()) continue;
      last = frame.status();
      if (wanted(last)) return now_ns();
    }
    give_up(std::string("waited in vain for ") + what + ": " + last.ShortDebugString().substr(0, 2000));
  }
  Status last;

 private:
  Frame next() {
    for (;;) {
      if (const auto body = reader_.next()) {
        Frame frame;
        if (!frame.ParseFromString(*body)) give_up("an unreadable frame");
        return frame;
      }
      char chunk[65536];
      const ssize_t got = ::recv(fd_, chunk, sizeof(chunk), 0);
      if (got <= 0) give_up("the interlock has closed its socket");
      reader_.feed({chunk, static_cast<std::size_t>(got)});
    }
  }
  int fd_;
  std::uint64_t id_ = 0;
  frame_reader reader_;
};

struct row {
  std::uint64_t number = 0;
  std::int64_t received = 0;
  std::int64_t answered = 0;
  std::string device;
  std::string path;
  std::string act;
  std::string argument;
  int status = 0;
};

struct trip_row {
  bool rack = false;
  std::int64_t edge = 0;
  std::int64_t seen = 0;
  std::int64_t first_off = 0;
  std::int64_t last_off = 0;
  std::int64_t done = 0;
  std::int64_t service = 0;
  std::int64_t interval = 0;
};

double share(std::vector<double> values, double part) {
  if (values.empty()) return -1;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<std::size_t>(part * static_cast<double>(values.size())))];
}

class leak_bench {
 public:
  leak_bench(std::string bin, std::string folder) : bin_(std::move(bin)), folder_(std::move(folder)) {}
  ~leak_bench() {
    stop_ = true;
    for (std::thread& each : burners_) each.join();
    for (const pid_t pid : {interlock_, sim_}) {
      if (pid > 0) ::kill(pid, SIGTERM), ::waitpid(pid, nullptr, 0);
    }
  }

  void start();
  void burn();
  trip_row trip(bool rack, int index);
  const Status& status() const { return link_->last; }

 private:
  std::string certificate_pin(const std::string& address) const;
  std::string post(const std::string& address, const std::string& path, const std::string& body) const;
  ArmedDevice device(const std::string& name, const char* kind, const std::string& address) const;
  void power_up();
  void read_journal();
  void measure(trip_row& of, const std::string& source);
  std::string sim_socket() const { return folder_ + "/sim/sim.sock"; }

  std::string bin_;
  std::string folder_;
  std::string password_;
  pid_t sim_ = -1;
  pid_t interlock_ = -1;
  std::unique_ptr<interlock_link> link_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> burners_;
  std::uint64_t last_trip_ = 0;
  std::streamoff read_to_ = 0;
  std::vector<row> rows_;  // of the trip under way
};

std::string leak_bench::certificate_pin(const std::string& address) const {
  std::FILE* file = std::fopen((folder_ + "/sim/tls/" + address + ".pem").c_str(), "r");
  X509* certificate = file == nullptr ? nullptr : PEM_read_X509(file, nullptr, nullptr, nullptr);
  if (certificate == nullptr) give_up("no certificate of " + address);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  X509_digest(certificate, EVP_sha256(), digest, &size);
  X509_free(certificate);
  std::fclose(file);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string leak_bench::post(const std::string& address, const std::string& path,
                             const std::string& body) const {
  CURL* easy = curl_easy_init();
  std::string reply;
  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
  curl_easy_setopt(easy, CURLOPT_URL, ("https://" + address + ":8443" + path).c_str());
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  curl_easy_setopt(easy, CURLOPT_USERPWD, ("root:" + password_).c_str());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 10'000L);
  curl_easy_setopt(
      easy, CURLOPT_WRITEFUNCTION, +[](const char* bytes, std::size_t size, std::size_t count, void* into) {
        static_cast<std::string*>(into)->append(bytes, size * count);
        return size * count;
      });
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &reply);
  const CURLcode code = curl_easy_perform(easy);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_slist_free_all(headers);
  curl_easy_cleanup(easy);
  return code != CURLE_OK ? curl_easy_strerror(code)
         : status >= 300  ? fmt::format("HTTP {}: {}", status, reply)
                          : "";
}

ArmedDevice leak_bench::device(const std::string& name, const char* kind, const std::string& address) const {
  ArmedDevice made;
  made.set_name(name);
  made.set_kind(kind);
  made.set_address(address + ":8443");
  made.set_pin_sha256(certificate_pin(address));
  made.set_account("root");
  made.set_password(password_);
  return made;
}

void leak_bench::start() {
  sim_ =
      spawn({bin_ + "/busbar-sim", "run", "--racks", "1", "--profile", "quick", "--seed", "7",
             "--rack-controllers", "--stamp-writes", "--network", network, "--state-dir", folder_ + "/sim"},
            folder_ + "/sim.log");
  ::close(connect_to(sim_socket()));
  password_ = ask_sim(sim_socket(), {{"op", "factory_password"}}).get<std::string>();
  if (::waitpid(
          spawn({bin_ + "/busbar-interlock", "key", "new", folder_ + "/key"}, folder_ + "/interlock.log"),
          nullptr, 0) < 0)
    give_up("no key");
  interlock_ = spawn({bin_ + "/busbar-interlock", "--instance", "r01", "--run-dir", folder_ + "/run",
                      "--state-dir", folder_ + "/state", "--key-file", folder_ + "/key"},
                     folder_ + "/interlock.log");
  link_ = std::make_unique<interlock_link>(folder_ + "/run/r01/interlock.sock");
  power_up();
  ArmingRecord record;
  record.set_rack("r01");
  record.set_generation(1);
  record.mutable_limits()->set_reset_dry_s(1);
  for (int n = 1; n <= 18; ++n) {
    ArmedDevice made =
        device(fmt::format("r01/c{:02}", n), "compute_tray", fmt::format("{}.1.{}", network, n));
    for (const char* detector : {"0_ColdPlate", "0_Manifold", "1_ColdPlate", "1_Manifold"})
      made.add_detectors(detector);
    *record.add_devices() = made;
  }
  for (int n = 1; n <= 9; ++n) {
    ArmedDevice made =
        device(fmt::format("r01/s{:02}", n), "switch_tray", fmt::format("{}.1.{}", network, 30 + n));
    for (int i = 1; i <= 6; ++i) made.add_detectors(fmt::format("leakage{}", i));
    *record.add_devices() = made;
  }
  for (int n = 1; n <= 8; ++n)
    *record.add_devices() =
        device(fmt::format("r01/p{:02}", n), "power_shelf", fmt::format("{}.1.{}", network, 50 + n));
  ArmedDevice controller = device("r01/m01", "rack_controller", network + ".1.71");
  for (const char* name : {"supply", "return"}) {
    Valve* valve = controller.add_valves();
    valve->set_name(name);
    valve->set_stroke_ms(stroke_ms);
  }
  *record.add_devices() = controller;
  ArmedDevice cdu = device("cdu01", "cdu", network + ".200.1");
  cdu.add_detectors("r01_rope");
  cdu.add_detectors("r01_pan");
  cdu.set_connector("r01");
  *record.add_devices() = cdu;
  Request arm;
  *arm.mutable_arm()->mutable_record() = record;
  if (const Answer answer = link_->ask(arm); answer.code() != 0) give_up("not armed: " + answer.message());
}

bool all_armed(const Status& status) {
  return status.devices_size() == 37 && status.open_trips_size() == 0 &&
         std::all_of(status.devices().begin(), status.devices().end(),
                     [](const DeviceStatus& each) { return each.armed(); });
}

void leak_bench::power_up() {
  for (const char* valve : {"supply", "return"}) {
    post(network + ".1.71",
         fmt::format("/redfish/v1/Chassis/Rack_0/ThermalSubsystem/CoolantConnectors/{}/Actions/"
                     "CoolantConnector.ValveControl",
                     valve),
         R"({"ValveState":"Open"})");
  }
  for (int n = 51; n <= 58; ++n) {
    post(fmt::format("{}.1.{}", network, n), "/redfish/v1/Chassis/PowerShelf_0/Actions/Chassis.Reset",
         R"({"ResetType":"On"})");
  }
}

void leak_bench::burn() {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned n = 0; n < cores; ++n) {
    burners_.emplace_back([this] {
      volatile std::uint64_t sink = 0;
      while (!stop_) sink = sink * 6364136223846793005ULL + 1;
    });
  }
}

void leak_bench::read_journal() {
  std::ifstream file(folder_ + "/sim/journal.jsonl");
  file.seekg(read_to_);
  std::string line;
  while (std::getline(file, line)) {
    if (file.eof()) break;  // not whole yet
    read_to_ = file.tellg();
    const json each = json::parse(line, nullptr, false);
    if (!each.is_object()) continue;
    if (each.contains("written_ns")) {
      for (auto known = rows_.rbegin(); known != rows_.rend(); ++known) {
        if (known->number != each["number"]) continue;
        known->answered = each["written_ns"].get<std::int64_t>();
        break;
      }
      continue;
    }
    rows_.push_back({each.value("number", std::uint64_t{0}), each.value("received_ns", std::int64_t{0}),
                     each.value("answered_ns", std::int64_t{0}), each.value("device", ""),
                     each.value("path", ""), each.value("act", ""), each.value("argument", ""),
                     each.value("status", 0)});
  }
}

// The evidence is the last reading of a detector of the source that was answered before the first ForceOff.
void leak_bench::measure(trip_row& of, const std::string& source) {
  std::map<std::string, std::int64_t> first;
  for (const row& each : rows_) {
    if (each.act != "reset" || each.argument != "ForceOff" || each.received < of.edge) continue;
    if (each.device.rfind("r01/p", 0) == 0) continue;
    const auto [at, fresh] = first.emplace(each.device, each.received);
    if (!fresh) at->second = std::min(at->second, each.received);
  }
  if (first.empty()) give_up("no ForceOff in the journal");
  of.first_off = INT64_MAX;
  for (const auto& [device, at] : first) {
    of.first_off = std::min(of.first_off, at);
    of.last_off = std::max(of.last_off, at);
  }
  if (of.rack && first.size() != 27) give_up(fmt::format("{} of 27 trays were turned off", first.size()));
  for (const row& each : rows_) {
    const bool reading = each.device == source && each.path.find("LeakDetector") != std::string::npos;
    if (!reading || each.answered < of.edge || each.answered > of.first_off) continue;
    of.seen = std::max(of.seen, each.answered);
    of.service += each.answered - std::max(each.received, of.edge);
  }
}

trip_row leak_bench::trip(bool rack, int index) {
  trip_row of;
  of.rack = rack;
  link_->until("every device armed", all_armed);
  const std::string source = rack ? "cdu01" : fmt::format("r01/c{:02}", index % 18 + 1);
  const std::string target = rack ? "cdu01/r01_rope" : source + "/0_Manifold";
  for (const DeviceStatus& each : link_->last.devices()) {
    if (each.name() == source) of.interval = each.poll_ms() * ms;
  }
  // The host runs, so that there is something to turn off.
  for (int n = 1; n <= 27; ++n) {
    const std::string address = fmt::format("{}.1.{}", network, n <= 18 ? n : n + 12);
    if (!rack && address != fmt::format("{}.1.{}", network, index % 18 + 1)) continue;
    post(address, "/redfish/v1/Systems/System_0/Actions/ComputerSystem.Reset", R"({"ResetType":"On"})");
  }
  ::usleep(
      static_cast<unsigned>(400'000 + (index * 7919) % 1000 * 1000));  // somewhere in the poll's interval
  read_journal();
  rows_.clear();
  of.edge = ask_sim(sim_socket(), {{"op", "fault_add"}, {"kind", "leak"}, {"target", target}})["from_ns"]
                .get<std::int64_t>();
  of.done = link_->until("the trip's end", [this](const Status& status) {
    return status.open_trips_size() == 1 && status.open_trips(0).closed() &&
           status.open_trips(0).number() > last_trip_;
  });
  last_trip_ = link_->last.open_trips(0).number();
  read_journal();
  measure(of, source);
  ask_sim(sim_socket(), {{"op", "fault_clear"}, {"kind", "leak"}, {"target", target}});
  Request reset;
  reset.mutable_reset()->set_device(rack ? "r01" : source);
  reset.mutable_reset()->set_reason("bench");
  interlock_link person(folder_ + "/run/r01/operator.sock");
  for (int tries = 0;; ++tries) {
    const Answer answer = person.ask(reset);
    if (answer.code() == 0) break;
    if (tries > 600) give_up("no reset: " + answer.message());
    ::usleep(100'000);
  }
  if (rack) power_up();
  return of;
}

}  // namespace

int main(int argc, char** argv) {
  int trips = 40;
  int rack_trips = 6;
  std::string raw;
  for (int at = 1; at + 1 < argc; at += 2) {
    const std::string name = argv[at];
    if (name == "--trips") trips = std::atoi(argv[at + 1]);
    if (name == "--rack-trips") rack_trips = std::atoi(argv[at + 1]);
    if (name == "--raw") raw = argv[at + 1];
  }
  curl_global_init(CURL_GLOBAL_DEFAULT);
  std::string pattern = (fs::temp_directory_path() / "bench-leak-XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  std::vector<trip_row> all;
  bool realtime = false;
  {
    leak_bench run(fs::canonical("/proc/self/exe").parent_path().string(), folder);
    run.start();
    run.burn();
    for (int n = 0; n < trips; ++n) all.push_back(run.trip(false, n));
    for (int n = 0; n < rack_trips; ++n) all.push_back(run.trip(true, n));
    realtime = run.status().realtime();
  }
  fs::remove_all(folder);
  std::vector<double> first, every, over, off, isolated;
  std::ofstream rows;
  if (!raw.empty()) rows.open(raw + "/leak.csv");
  if (!raw.empty()) rows << "rack,edge_ns,seen_ns,first_off_ns,last_off_ns,done_ns,service_ns,interval_ns\n";
  for (const trip_row& each : all) {
    const auto in_ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
    first.push_back(in_ms(each.first_off - each.seen));
    if (each.rack) every.push_back(in_ms(each.last_off - each.seen));
    if (each.rack) over.push_back(in_ms(each.first_off - each.edge - each.interval - each.service));
    (each.rack ? isolated : off).push_back(in_ms(each.done - each.seen) / 1e3);
    if (!raw.empty()) {
      rows << fmt::format("{},{},{},{},{},{},{},{}\n", each.rack, each.edge, each.seen, each.first_off,
                          each.last_off, each.done, each.service, each.interval);
    }
  }
  const auto line = [](const char* what, const std::vector<double>& values, const char* unit) {
    std::printf("%-24s n %4zu  p50 %9.3f  p99 %9.3f  max %9.3f %s\n", what, values.size(), share(values, 0.5),
                share(values, 0.99), values.empty() ? -1 : *std::max_element(values.begin(), values.end()),
                unit);
  };
  std::printf("%d tray trips, %d rack trips; all cores busy; real-time priority of the interlock: %s\n",
              trips, rack_trips, realtime ? "yes" : "NO");
  line("first ForceOff", first, "ms");
  line("all 27 trays", every, "ms");
  line("polled over interval", over, "ms");
  line("tray read off", off, "s");
  line("isolated", isolated, fmt::format("s (stroke {} s)", stroke_ms / 1000).c_str());
  std::printf(
      "%s\n",
      fmt::format(
          R"({{"trips":{},"rack_trips":{},"realtime":{},"first_forceoff_p99_ms":{:.3f},"all_trays_p99_ms":{:.3f},"polled_over_interval_ms":{:.3f},"tray_off_p99_s":{:.3f},"isolated_p99_s":{:.3f},"stroke_s":{}}})",
          trips, rack_trips, realtime, share(first, 0.99), share(every, 0.99), share(over, 0.99),
          share(off, 0.99), share(isolated, 0.99), stroke_ms / 1000)
          .c_str());
  return 0;
}
