#include "tests/bench/bench_load.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace busbar::bench {
namespace {

std::size_t drop_body(const char*, std::size_t size, std::size_t count, void*) {
  return size * count;
}

}  // namespace

busy_cores::busy_cores() {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned n = 0; n < cores; ++n) {
    threads_.emplace_back([this] {
      volatile std::uint64_t sink = 0;
      while (!stop_) sink = sink * 6364136223846793005ULL + 1;
    });
  }
}

busy_cores::~busy_cores() {
  stop_ = true;
  for (std::thread& each : threads_) each.join();
}

busy_share::ticks busy_share::read() {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  ticks found;
  double value = 0;
  for (int column = 0; column < 8 && file >> value; ++column) {
    found.all += value;
    if (column == 3 || column == 4) found.idle += value;  // idle, iowait
  }
  return found;
}

double busy_share::now() const {
  const ticks end = read();
  const double all = end.all - begin_.all;
  return all > 0 ? 1 - (end.idle - begin_.idle) / all : 0;
}

double cpu_seconds(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  std::istringstream rest(line.substr(std::min(line.size(), line.rfind(')') + 2)));
  std::string word;
  double ticks = 0;
  for (int field = 3; field <= 15 && rest >> word; ++field) {
    if (field == 14 || field == 15) ticks += std::strtod(word.c_str(), nullptr);
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double resident_mib(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  double whole = 0;
  double resident = 0;
  file >> whole >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1048576.0;
}

telemetry_readers::telemetry_readers(interlock_rig& of) {
  std::vector<place> all;
  const auto add = [&all](const std::string& address, const char* report, std::int64_t every_s) {
    // Spread over the second, so that no BMC is asked in step with another.
    const std::int64_t first = now_ns() + static_cast<std::int64_t>(all.size() * 37 % 1000) * ms;
    all.push_back({address, std::string("/redfish/v1/TelemetryService/MetricReports/") + report,
                   every_s * 1'000 * ms, first});
  };
  for (int rack = 1; rack <= of.options().racks; ++rack) {
    const std::string subnet = fmt::format("{}.{}.", of.options().network, rack);
    for (int n = 1; n <= 18; ++n) {
      add(subnet + std::to_string(n), "HGX_PlatformEnvironmentMetrics_0", 1);
      add(subnet + std::to_string(n), "HGX_ProcessorMetrics_0", 1);
    }
    for (int n = 31; n <= 39; ++n) {
      add(subnet + std::to_string(n), "NVSwitchEnvironmentMetrics_0", 1);
      add(subnet + std::to_string(n), "NVSwitchPortMetrics_0", 10);
    }
    for (int n = 51; n <= 58; ++n) add(subnet + std::to_string(n), "PowerShelfMetrics_0", 1);
  }
  // One BMC is read by one thread; a thread waits for it as long as it takes.
  constexpr std::size_t threads = 14;
  std::vector<std::vector<place>> parts(threads);
  for (const place& each : all) {
    const auto octet = std::strtoul(each.address.c_str() + each.address.rfind('.') + 1, nullptr, 10);
    parts[(octet + (each.address.find(".2.") != std::string::npos ? 7 : 0)) % threads].push_back(each);
  }
  for (std::vector<place>& each : parts) {
    threads_.emplace_back(
        [this, each, password = of.password()]() mutable { run(std::move(each), password); });
  }
}

telemetry_readers::~telemetry_readers() {
  stop_ = true;
  for (std::thread& each : threads_) each.join();
}

void telemetry_readers::run(std::vector<place> places, const std::string& password) {
  CURL* easy = curl_easy_init();
  while (!stop_ && !places.empty()) {
    const auto next =
        std::min_element(places.begin(), places.end(),
                         [](const place& left, const place& right) { return left.due_ns < right.due_ns; });
    const std::int64_t wait = next->due_ns - now_ns();
    if (wait > 0) {
      ::usleep(static_cast<unsigned>(std::min(wait, 50 * ms) / 1000));
      continue;
    }
    curl_easy_reset(easy);  // connections stay
    curl_easy_setopt(easy, CURLOPT_URL, ("https://" + next->address + ":8443" + next->report).c_str());
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_USERPWD, ("root:" + password).c_str());
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 2'000L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &drop_body);
    if (curl_easy_perform(easy) == CURLE_OK) ++reads_;
    next->due_ns = std::max(next->due_ns + next->every_ns, now_ns());
  }
  curl_easy_cleanup(easy);
}

bring_up_beside::bring_up_beside(const std::string& programs, std::string log) : log_(std::move(log)) {
  pid_ = spawn({"/usr/bin/python3", BUSBAR_SOURCE_DIR "/tests/bench/bring_up_beside.py", programs}, log_);
}

bring_up_beside::~bring_up_beside() {
  if (pid_ > 0) ::kill(pid_, SIGTERM), ::waitpid(pid_, nullptr, 0);
}

int bring_up_beside::lines(const std::string& word) const {
  std::ifstream file(log_);
  int count = 0;
  for (std::string line; std::getline(file, line);) count += line.starts_with(word) ? 1 : 0;
  return count;
}

int bring_up_beside::done() const {
  return lines("PRODUCTION");
}
int bring_up_beside::failed() const {
  return lines("FAILED");
}

}  // namespace busbar::bench
