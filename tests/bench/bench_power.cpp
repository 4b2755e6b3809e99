// The rack's power limit in a model of 20 racks drawn +-20 %: how long a load step stays over the limit, and
// how long the loss of a shelf does. Model, not wire: 72 GPUs behind BMCs that take one write at a time
// (log-normal, median 15 ms, p99 150 ms), each GPU holding its cap as the mean of one second, power read four
// times a second. bench_power [--raw DIR]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "actors/shelf/power_cap_logic.hpp"

namespace busbar::bench {
namespace {

constexpr int trays = 18;
constexpr int gpus_per_tray = 4;
constexpr double step_s = 0.005;
constexpr double read_every_s = 0.25;
constexpr double shelf_w = 33'000;

struct gpu_model {
  double load_w = 0;  // what it would draw
  double cap_w = 1800;
  double drawn_w = 0;
};

// One rack: devices that obey late, and the logic under test.
class rack_model {
 public:
  explicit rack_model(unsigned seed) : random_(seed) {
    const auto drawn = [this](double nominal) {
      return nominal * std::uniform_real_distribution(0.8, 1.2)(random_);
    };
    others_w_ = drawn(35'000);
    most_w_ = drawn(1'800);
    limiter_s_ = drawn(1.0);
    service_median_s_ = drawn(0.015);
    limit_w_ = others_w_ + 72 * most_w_ * 0.75;
    std::vector<shelf::gpu_limits> gpus;
    for (int at = 0; at < trays * gpus_per_tray; ++at) gpus.push_back({name_of(at), at % 3, 300, most_w_});
    shelves_ = 8;
    shelf::cap_policy policy;
    policy.rack_limit_w = limit_w_;
    policy.others_w = others_w_ * 1.05;
    state_ = shelf::begin_caps(policy, capacity_w(), gpus);
    models_.assign(gpus.size(), {});
    queues_.resize(trays);
    busy_until_s_.assign(trays, 0);
    for (gpu_model& one : models_) one.cap_w = most_w_;
    for (int at = 0; at < trays * gpus_per_tray; ++at) feed(shelf::cap_read{name_of(at), most_w_});
  }

  void set_load(double share_of_limit) {
    const double each_w = (share_of_limit * limit_w_ - others_w_) / static_cast<double>(models_.size());
    for (gpu_model& one : models_) one.load_w = std::min(each_w, most_w_);
  }
  // Shelves are lost until what is left just carries the present load at this share.
  void lose_supply_to(double share_of_load) {
    lost_to_w_ = rack_w() * share_of_load;
    feed(shelf::supply_changed{capacity_w()});
  }
  double rack_w() const {
    double sum = others_w_;
    for (const gpu_model& one : models_) sum += one.drawn_w;
    return sum;
  }
  double limit_w() const { return std::min(limit_w_, capacity_w()); }

  void run(double seconds) {
    for (double end = now_s_ + seconds; now_s_ < end; now_s_ += step_s) {
      serve_writes();
      for (gpu_model& one : models_) {
        const double aim_w = std::min(one.load_w, one.cap_w);
        // Load rises at once; a cap is reached as the mean of the limiter's window.
        if (aim_w >= one.drawn_w) {
          one.drawn_w = aim_w;
        } else {
          one.drawn_w = std::max(aim_w, one.drawn_w - (one.drawn_w - aim_w) * 3 * step_s / limiter_s_);
        }
      }
      if (now_s_ >= next_read_s_) {
        next_read_s_ = now_s_ + read_every_s;
        feed(shelf::rack_measured{rack_w() * noise(), rack_w() - others_w_});
      }
      trace.push_back({now_s_, rack_w(), limit_w()});
    }
  }

  struct sample {
    double at_s, rack_w, limit_w;
  };
  std::vector<sample> trace;
  double now_s() const { return now_s_; }

 private:
  static std::string name_of(int at) {
    return fmt::format("r01/c{:02}/gpu{}", at / gpus_per_tray + 1, at % gpus_per_tray);
  }
  double capacity_w() const { return lost_to_w_ > 0 ? lost_to_w_ : shelves_ * shelf_w; }
  double noise() { return 1 + 0.002 * std::normal_distribution<double>()(random_); }
  double service_s() {
    return service_median_s_ * std::exp(std::normal_distribution<double>()(random_) * std::log(10.0) / 2.326);
  }

  void feed(const shelf::cap_event& event) {
    for (const auto& effect : step(state_, event, static_cast<std::int64_t>(now_s_ * 1e9))) {
      const auto* cap = std::get_if<shelf::set_cap>(&effect);
      if (cap == nullptr) continue;
      const int tray = std::stoi(cap->gpu.substr(5, 2)) - 1;
      queues_[static_cast<std::size_t>(tray)].push_back(*cap);
    }
  }
  // A BMC takes one write after the other and shows it at the end of its service time; the read-back costs
  // another.
  void serve_writes() {
    for (std::size_t tray = 0; tray < queues_.size(); ++tray) {
      if (now_s_ < busy_until_s_[tray]) continue;
      if (auto& done = in_service_[tray]; done.has_value()) {
        models_[tray * gpus_per_tray + static_cast<std::size_t>(done->gpu.back() - '0')].cap_w = done->watts;
        const shelf::set_cap shown = *done;
        done.reset();
        feed(shelf::cap_read{shown.gpu, shown.watts});
      }
      if (queues_[tray].empty()) continue;
      in_service_[tray] = queues_[tray].front();
      queues_[tray].pop_front();
      busy_until_s_[tray] = now_s_ + service_s() + service_s();
    }
  }

  std::mt19937 random_;
  double others_w_, most_w_, limiter_s_, service_median_s_, limit_w_;
  double lost_to_w_ = 0;
  int shelves_ = 8;
  shelf::cap_state state_;
  std::vector<gpu_model> models_;
  std::vector<std::deque<shelf::set_cap>> queues_;
  std::map<std::size_t, std::optional<shelf::set_cap>> in_service_;
  std::vector<double> busy_until_s_;
  double now_s_ = 0;
  double next_read_s_ = 0;
};

// From the event until the draw stays within the limit for good.
double seconds_over(const rack_model& rack, double from_s) {
  double last_over_s = from_s;
  for (const auto& one : rack.trace) {
    if (one.at_s >= from_s && one.rack_w > one.limit_w) last_over_s = one.at_s + step_s;
  }
  return last_over_s - from_s;
}

int measure(const std::string& raw) {
  std::ofstream out;
  if (!raw.empty()) {
    std::filesystem::create_directories(raw);
    out.open(raw + "/power.csv");
    out << "rack,event,seconds\n";
  }
  double worst_step_s = 0;
  double worst_loss_s = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    rack_model stepped(seed);
    stepped.set_load(0.88);
    stepped.run(10);
    stepped.set_load(0.88 * 1.2);
    const double step_at = stepped.now_s();
    stepped.run(20);
    const double over_s = seconds_over(stepped, step_at);
    rack_model starved(seed + 100);
    starved.set_load(0.95);
    starved.run(10);
    const double loss_at = starved.now_s();
    starved.lose_supply_to(7.0 / 8.0);
    starved.run(20);
    const double loss_s = seconds_over(starved, loss_at);
    fmt::print("rack {:>2}: step {:.2f} s, shelf {:.2f} s\n", seed, over_s, loss_s);
    if (out) out << fmt::format("{},step,{:.3f}\n{},shelf,{:.3f}\n", seed, over_s, seed, loss_s);
    worst_step_s = std::max(worst_step_s, over_s);
    worst_loss_s = std::max(worst_loss_s, loss_s);
  }
  fmt::print("{{\"cap_excursion_s\":{:.2f},\"shelf_loss_s\":{:.2f}}}\n", worst_step_s, worst_loss_s);
  return 0;
}

}  // namespace
}  // namespace busbar::bench

int main(int argc, char** argv) {
  std::string raw;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) == "--raw") raw = argv[i + 1];
  }
  return busbar::bench::measure(raw);
}
