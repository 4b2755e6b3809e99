#include "tests/support/site_agents.hpp"

#include <chrono>
#include <cmath>
#include <limits>

namespace busbar::test_support {
namespace {

constexpr auto way_to_the_daemon = std::chrono::milliseconds(5);
using kind = validation::agent_event::kind;

std::string parameter_of(const std::string& uri, const std::string& name) {
  const std::size_t at = uri.find(name + "=");
  if (at == std::string::npos) return {};
  const std::size_t from = at + name.size() + 1;
  return uri.substr(from, uri.find('&', from) - from);
}

}  // namespace

class site_agents::port final : public validation::agent_port {
 public:
  port(site_agents& house, std::uint64_t generation) : house_(house), generation_(generation) {}

  std::string issue_token(const std::string& member, const std::string& expected_serial) override {
    if (!open()) return {};
    const std::string token = "token-" + std::to_string(house_.next_++);
    house_.tokens_[member] = {token, expected_serial};
    return token;
  }
  void revoke(const std::string& member) override {
    if (open()) house_.tokens_.erase(member);
  }
  bool run(const std::string& member, const agent::Run& wanted) override {
    if (!connected(member)) return false;
    house_.begin(member, wanted);
    return true;
  }
  bool cancel(const std::string& member, const std::string&) override {
    if (!connected(member)) return false;
    house_.hosts_[member].run = 0;
    return true;
  }
  bool renew_lease(const std::string& member, const std::string&) override { return connected(member); }
  bool connected(const std::string& member) const override { return open() && house_.connected(member); }

 private:
  bool open() const { return generation_ == house_.generation_ && house_.sink_ != nullptr; }
  site_agents& house_;
  const std::uint64_t generation_;
};

std::shared_ptr<validation::agent_port> site_agents::door(validation::agent_sink sink) {
  sink_ = std::move(sink);
  auto made = std::make_shared<port>(*this, ++generation_);
  resume();
  return made;
}

void site_agents::close_door() {
  sink_ = nullptr;
  ++generation_;
  for (auto& [member, one] : hosts_) {
    one.connected = false;
    one.run = 0;
  }
}

void site_agents::resume() {
  for (auto& [member, one] : hosts_) {
    if (one.running && !one.connected && (one.born || !one.token.empty())) {
      clock_.after(way_to_the_daemon, [this, name = member] { come(name); });
    }
  }
}

void site_agents::host_booted(const std::string& member, const std::string& boot_uri) {
  host& one = hosts_[member];
  one = host{};
  one.running = true;
  one.boot_id = "boot-" + std::to_string(next_++);
  one.token = parameter_of(boot_uri, "token");
  if (one.token.empty() || site_.fault_active(sim::fault_kind::agent_silent, member, now())) {
    one.token.clear();  // another system, or an agent that does not report
    return;
  }
  clock_.after(way_to_the_daemon, [this, member] { come(member); });
}

void site_agents::come(const std::string& member) {
  host& one = hosts_[member];
  if (!one.running || one.connected || sink_ == nullptr) return;
  validation::agent_event event;
  event.member = member;
  event.hello.set_boot_id(one.boot_id);
  event.hello.set_dmi_serial(site_.dmi_serial(member, now()));
  event.hello.set_limits(site_.sku().name);
  if (!one.born) {
    const auto known = tokens_.find(member);
    const bool good = known != tokens_.end() && known->second.token == one.token;
    const bool fits = good && (known->second.expected_serial.empty() ||
                               known->second.expected_serial == event.hello.dmi_serial());
    if (!fits) {
      one.token.clear();
      event.what = kind::refused;
      event.reason = good ? "AGENT_SERIAL_MISMATCH: another serial than Redfish showed"
                          : "AGENT_NOT_SEEN: the token is not of this boot";
      if (good) tell(std::move(event));
      return;
    }
    tokens_.erase(known);
    one.born = true;
  }
  one.connected = true;
  event.what = kind::hello;
  tell(std::move(event));
}

void site_agents::host_off(const std::string& member) {
  const bool was_connected = hosts_[member].connected;
  hosts_[member] = host{};
  if (!was_connected) return;
  validation::agent_event event;
  event.member = member;
  event.what = kind::lost;
  event.reason = "connection closed";
  clock_.after(way_to_the_daemon, [this, event] { tell(event); });
}

void site_agents::kill(const std::string& member) {
  const host before = hosts_[member];
  host_off(member);
  if (before.running) {
    hosts_[member].running = true;
    hosts_[member].boot_id = before.boot_id;
  }
}

void site_agents::begin(const std::string& member, const agent::Run& run) {
  host& one = hosts_[member];
  const std::uint64_t number = one.run = next_++;
  site_.set_load(member, run.probe() == "matrix_burn" ? 1.0 : 0.5, now());
  const auto length =
      std::chrono::seconds(run.duration().seconds()) + std::chrono::nanoseconds(run.duration().nanos());
  clock_.after(length, [this, member, number, run] { finish(member, number, run); });
}

agent::Measurement site_agents::row(const std::string& member, const agent::Run& run, int gpu,
                                    const std::string& metric) {
  const sim::performance seen = site_.measure(member, gpu, run.probe(), metric, now());
  agent::Measurement out;
  out.set_run_id(run.run_id());
  out.set_test(run.test());
  out.set_gpu(static_cast<std::uint32_t>(gpu));
  out.set_metric(metric);
  out.set_unit(seen.unit);
  out.set_text(seen.text);
  if (seen.value) out.set_value(*seen.value);
  out.set_quality(seen.value || !seen.text.empty() ? agent::GOOD : agent::BAD);
  return out;
}

void site_agents::finish(const std::string& member, std::uint64_t number, const agent::Run& run) {
  host& one = hosts_[member];
  if (one.run != number) return;
  one.run = 0;
  bool drop = drop_.contains(member) && drop_[member] == run.test();
  bool spoil = spoil_.contains(member) && spoil_[member] == run.test();
  for (int gpu = 0; gpu < site_.sku().gpus; ++gpu) {
    for (const std::string& metric : run.metrics()) {
      validation::agent_event event;
      event.member = member;
      event.what = kind::measurement;
      event.measurement = row(member, run, gpu, metric);
      if (std::exchange(drop, false)) continue;
      if (std::exchange(spoil, false)) event.measurement.set_value(std::numeric_limits<double>::quiet_NaN());
      const bool sound = event.measurement.quality() == agent::GOOD &&
                         (!event.measurement.has_value() || std::isfinite(event.measurement.value()));
      if (sound) rows_[run.run_id()].emplace(member, run.test(), gpu, metric);
      tell(std::move(event));
    }
  }
  site_.set_load(member, 0, now());
  validation::agent_event event;
  event.member = member;
  event.what = kind::test_done;
  event.test_done.set_run_id(run.run_id());
  event.test_done.set_test(run.test());
  event.test_done.set_ok(true);
  tell(std::move(event));
}

void site_agents::tell(validation::agent_event event) {
  if (sink_) sink_(std::move(event));
}

std::size_t site_agents::rows_of(const std::string& run_id) const {
  const auto found = rows_.find(run_id);
  return found == rows_.end() ? 0 : found->second.size();
}

bool site_agents::connected(const std::string& member) const {
  const auto found = hosts_.find(member);
  return found != hosts_.end() && found->second.connected;
}

}  // namespace busbar::test_support
