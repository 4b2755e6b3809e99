// What one whole rack costs while nothing happens: busbar-sim with a vr-nvl72 in production, a busbard and a
// busbar-interlock as they are installed. The rack is brought up first by the CLI; then it rests, and every
// few seconds the programs' processor time and memory are read from /proc, and the simulator is asked how
// many points it has reported.
//
//   cpu_core_fraction  processor time of busbard and busbar-interlock together, a second, over the whole rest
//   rss_mib            resident memory of both together, the most that was seen
//   points_per_s       rows of MetricReports that the simulator gave out, a second
//
// usage: bench_rest [--seconds N] [--raw DIR] [--programs DIR]
#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/bench/bench_programs.hpp"

namespace {

using namespace busbar::bench;
namespace fs = std::filesystem;

constexpr int settle_s = 20;  // after the bring-up
constexpr int between_s = 5;
constexpr const char* rack = "r01";

struct arguments {
  int seconds = 600;
  std::string raw;
  std::string programs;
};

struct sample {
  double at_s = 0;
  double busbard_cpu_s = 0;
  double interlock_cpu_s = 0;
  double busbard_mib = 0;
  double interlock_mib = 0;
  double points = 0;
};

double cpu_seconds_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto behind = text.rfind(')');
  if (behind == std::string::npos) give_up(fmt::format("process {} is gone", pid));
  std::istringstream fields(text.substr(behind + 2));
  std::string word;
  double user = 0;
  double system = 0;
  for (int field = 3; field <= 15 && fields >> word; ++field) {
    if (field == 14) user = std::stod(word);
    if (field == 15) system = std::stod(word);
  }
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double resident_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stod(line.substr(6)) / 1024;
  }
  give_up(fmt::format("process {} is gone", pid));
}

// All programs of one rack, in a folder of their own.
class rested_rack {
 public:
  rested_rack(std::string programs, fs::path folder)
      : programs_(std::move(programs)), folder_(std::move(folder)) {
    for (const char* each : {"run/r01", "sim", "var/r01/busbard", "log"})
      fs::create_directories(folder_ / each);
    ::setenv("BUSBAR_RUN_DIR", in("run").c_str(), 1);
    children.clear();
    spawn({programs_ + "/busbar-sim", "run", "--racks", "1", "--profile", "quick", "--seed", "1",
           "--state-dir", in("sim")},
          in("log/sim.log"));
    ::close(connect_to(in("sim/sim.sock")));
    write_config();
    run({programs_ + "/busbard", "vault-key", "new", in("var/r01/vault.key")});
    run({programs_ + "/busbar-interlock", "key", "new", in("var/r01/interlock.key")});
    interlock_ = spawn({programs_ + "/busbar-interlock", "--instance", rack, "--run-dir", in("run"),
                        "--state-dir", in("var"), "--key-file", in("var/r01/interlock.key")},
                       in("log/interlock.log"));
    ::close(connect_to(in("run/r01/interlock.sock")));
    busbard_ =
        spawn({programs_ + "/busbard", "--role", "rack", "--instance", rack, "--config", in("r01.yaml")},
              in("log/busbard.log"));
    ::close(connect_to(in("run/r01/busbard.sock")));
    run({programs_ + "/busbar", "manifest", "apply", in("sim/site"), "--yes"});
    run({programs_ + "/busbar", "rack", "bringup", rack, "--wait", "--timeout", "15m", "--yes"});
  }
  ~rested_rack() {
    for (auto at = children.rbegin(); at != children.rend(); ++at) {
      ::kill(*at, SIGTERM);
      ::waitpid(*at, nullptr, 0);
    }
    children.clear();
  }
  rested_rack(const rested_rack&) = delete;
  rested_rack& operator=(const rested_rack&) = delete;

  sample look(std::int64_t begin_ns) const {
    sample now;
    now.points = points();
    now.at_s = static_cast<double>(now_ns() - begin_ns) / 1e9;
    now.busbard_cpu_s = cpu_seconds_of(busbard_);
    now.interlock_cpu_s = cpu_seconds_of(interlock_);
    now.busbard_mib = resident_of(busbard_);
    now.interlock_mib = resident_of(interlock_);
    return now;
  }

 private:
  std::string in(const std::string& name) const { return (folder_ / name).string(); }

  void write_config() const {
    std::ofstream(in("r01.yaml")) << fmt::format(
        "apiVersion: busbar.v1\nkind: Daemon\ninstance: {}\nrun_dir: {}\nstate_dir: {}\nsite_dir: "
        "{}\nvault_key_file: {}\n",
        rack, in("run"), in("var/r01/busbard"), in("sim/site"), in("var/r01/vault.key"));
  }

  void run(const std::vector<std::string>& words) {
    const pid_t pid = spawn(words, in("log/commands.log"));
    children.pop_back();
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (status != 0) give_up(fmt::format("{} failed; see {}", fmt::join(words, " "), in("log")));
  }

  // Of all the rack's devices, since the simulator's start.
  double points() const {
    double all = 0;
    const auto add = [this, &all](const std::string& member) {
      const json truth = ask_sim(in("sim/sim.sock"), {{"op", "truth"}, {"path", member}});
      all += truth.at("points_reported").get<double>();
    };
    for (const auto& [letter, count] : {std::pair{'c', 18}, std::pair{'s', 9}, std::pair{'p', 8}}) {
      for (int n = 1; n <= count; ++n) add(fmt::format("{}/{}{:02}", rack, letter, n));
    }
    return all;
  }

  const std::string programs_;
  const fs::path folder_;
  pid_t busbard_ = -1;
  pid_t interlock_ = -1;
};

void report(const std::vector<sample>& all) {
  const sample& first = all.front();
  const sample& last = all.back();
  const double seconds = last.at_s - first.at_s;
  const double busbard = (last.busbard_cpu_s - first.busbard_cpu_s) / seconds;
  const double interlock = (last.interlock_cpu_s - first.interlock_cpu_s) / seconds;
  double memory = 0;
  for (const sample& one : all) memory = std::max(memory, one.busbard_mib + one.interlock_mib);
  std::printf("%s", fmt::format("one rack (vr-nvl72) in production, {:.0f} s at rest\n"
                                "  busbard           {:5.1f} % of a core  {:6.1f} MiB at the end\n"
                                "  busbar-interlock  {:5.1f} % of a core  {:6.1f} MiB at the end\n"
                                "  points            {:.0f}/s\n",
                                seconds, 100 * busbard, last.busbard_mib, 100 * interlock, last.interlock_mib,
                                (last.points - first.points) / seconds)
                        .c_str());
  std::printf("%s\n",
              fmt::format(R"({{"seconds":{:.0f},"cpu_core_fraction":{:.3f},"busbard_core_fraction":{:.3f},)"
                          R"("interlock_core_fraction":{:.3f},"rss_mib":{:.1f},"points_per_s":{:.0f}}})",
                          seconds, busbard + interlock, busbard, interlock, memory,
                          (last.points - first.points) / seconds)
                  .c_str());
}

void write_raw(const std::string& folder, const std::vector<sample>& all) {
  std::ofstream file(folder + "/rest.csv");
  file << "at_s,busbard_cpu_s,interlock_cpu_s,busbard_mib,interlock_mib,points\n";
  for (const sample& one : all) {
    file << fmt::format("{:.6f},{:.2f},{:.2f},{:.3f},{:.3f},{:.0f}\n", one.at_s, one.busbard_cpu_s,
                        one.interlock_cpu_s, one.busbard_mib, one.interlock_mib, one.points);
  }
}

arguments parse(int argc, char** argv) {
  arguments of;
  for (int at = 1; at + 1 < argc; at += 2) {
    const std::string name = argv[at];
    if (name == "--seconds") of.seconds = std::atoi(argv[at + 1]);
    if (name == "--raw") of.raw = argv[at + 1];
    if (name == "--programs") of.programs = argv[at + 1];
  }
  if (of.seconds < 2 * between_s) give_up("--seconds: 10 or more");
  return of;
}

}  // namespace

int main(int argc, char** argv) {
  arguments wanted = parse(argc, argv);
  if (wanted.programs.empty()) wanted.programs = fs::canonical("/proc/self/exe").parent_path().string();
  std::string pattern = (fs::temp_directory_path() / "bench-rest-XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  std::vector<sample> all;
  {
    const rested_rack rack_at_rest(wanted.programs, folder);
    ::sleep(settle_s);
    const std::int64_t begin = now_ns();
    all.push_back(rack_at_rest.look(begin));
    for (int passed = between_s; passed <= wanted.seconds; passed += between_s) {
      ::sleep(between_s);
      all.push_back(rack_at_rest.look(begin));
    }
  }
  fs::remove_all(folder);
  if (!wanted.raw.empty()) write_raw(wanted.raw, all);
  report(all);
  return 0;
}
