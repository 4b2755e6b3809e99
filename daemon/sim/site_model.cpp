#include "daemon/sim/site_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include "daemon/sim/physics/fluid.hpp"

namespace busbar::sim {

namespace {

constexpr int switch_octet = 30;
constexpr int shelf_octet = 50;
constexpr int controller_octet = 70;
constexpr int pdu_octet = 80;
constexpr int cdu_subnet = 200;

std::vector<std::string> numbers(int count, int first = 0) {
  std::vector<std::string> list;
  for (int each = first; each < first + count; ++each) {
    list.push_back(std::to_string(each));
  }
  return list;
}

std::vector<std::string> control_names(const cdu_controller& unit) {
  std::vector<std::string> names;
  for (const cdu_point& each : unit.points()) {
    names.push_back(each.name);
  }
  return names;
}

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

char letter_of(device_kind kind) {
  switch (kind) {
    case device_kind::compute_tray:
      return 'c';
    case device_kind::switch_tray:
      return 's';
    case device_kind::power_shelf:
      return 'p';
    case device_kind::cdu:
      return 'u';
    case device_kind::rack_controller:
      return 'm';
    case device_kind::rack_pdu:
      return 'u';
  }
  return 'u';
}

}  // namespace

site_model::site_model(site_options options, profile timings, sku_data sku)
    : options_(std::move(options)),
      timings_(std::move(timings)),
      sku_(std::move(sku)),
      loop_(sku_, timings_, options_.racks, options_.seed),
      now_(options_.start),
      tick_end_(options_.start + coolant_tick) {
  const auto secret = [this](const char* name) {
    return format("%s-%010llx", name,
                  static_cast<unsigned long long>(physics::hash_of(name, options_.seed) >> 24));
  };
  factory_password_ = secret("factory");
  reader_password_ = secret("reader");
  pdu_secret_ = secret("pdu");
  build();
}

device_identity site_model::identity_of(int rack, device_kind kind, int ordinal) const {
  device_identity identity;
  identity.kind = kind;
  identity.rack = kind == device_kind::cdu ? 0 : rack;
  identity.ordinal = ordinal;
  const int subnet = kind == device_kind::cdu ? cdu_subnet : rack;
  const int octet = ordinal + (kind == device_kind::switch_tray       ? switch_octet
                               : kind == device_kind::power_shelf     ? shelf_octet
                               : kind == device_kind::rack_controller ? controller_octet
                               : kind == device_kind::rack_pdu        ? pdu_octet
                                                                      : 0);
  identity.member =
      kind == device_kind::cdu ? "cdu01" : format("r%02d/%c%02d", rack, letter_of(kind), ordinal);
  identity.address = options_.network + format(".%d.%d", subnet, octet);
  identity.mac = format("02:18:%02x:00:00:%02x", static_cast<unsigned>(subnet), static_cast<unsigned>(octet));
  identity.serial = format("SN18%02d%03d", subnet, octet);
  identity.uuid = uuid_of(physics::hash_of(identity.member, options_.seed));
  return identity;
}

template <class Device>
Device* site_model::adopt(std::unique_ptr<Device> made) {
  Device* const raw = made.get();
  by_address_[raw->identity().address] = raw;
  by_member_[raw->identity().member] = raw;
  service_.emplace(raw, physics::stream(physics::hash_of(raw->identity().member, options_.seed ^ 0x5e41ce)));
  devices_.push_back(std::move(made));
  return raw;
}

void site_model::build() {
  const range_map ranges = {{"gpus", numbers(sku_.gpus)},
                            {"cpus", numbers(sku_.cpus)},
                            {"nics", numbers(sku_.nics)},
                            {"dpus", numbers(sku_.dpus)},
                            {"drives", numbers(sku_.drives)},
                            {"dimms", numbers(sku_.dimms)},
                            {"nvlinks", numbers(sku_.nvlinks)},
                            {"asics", numbers(sku_.asics)},
                            {"asic_ports", numbers(sku_.ports_per_asic)},
                            {"psus", numbers(sku_.psus)},
                            {"pumps", numbers(static_cast<int>(cdu_pumps), 1)},
                            {"cdu_controls", control_names(loop_.controller())},
                            {"compute_detectors", sku_.compute_detectors},
                            {"switch_detectors", sku_.switch_detectors},
                            {"racks", racks()},
                            {"rack_detectors", {"rope", "pan"}},
                            {"outlets", numbers(std::max(8, sku_.shelves), 1)},
                            {"isolation_valves", {"supply", "return"}}};
  std::map<std::string, std::shared_ptr<const resource_tree>> trees;
  for (const char* const kind :
       {"compute_tray", "switch_tray", "power_shelf", "cdu", "rack_controller", "rack_pdu"}) {
    trees[kind] = resource_tree::expand(kind, ranges);
  }
  for (int rack = 1; rack <= options_.racks; ++rack) {
    racks_.emplace_back();
    build_rack(rack, trees);
  }
  cdu_ = adopt(std::make_unique<coolant_unit>(identity_of(0, device_kind::cdu, 1), *this, trees["cdu"],
                                              factory_password_, reader_password_));
}

void site_model::build_rack(int rack,
                            const std::map<std::string, std::shared_ptr<const resource_tree>>& trees) {
  const auto index = static_cast<std::size_t>(rack - 1);
  rack_parts& parts = racks_[index];
  // Old firmware on every tray of the first rack, on every third of the others.
  const auto starts_old = [rack](int ordinal) { return rack == 1 || ordinal % 3 == 0; };
  for (int each = 1; each <= sku_.compute; ++each) {
    parts.compute.push_back(
        adopt(std::make_unique<compute_tray>(identity_of(rack, device_kind::compute_tray, each), *this,
                                             trees.at("compute_tray"), starts_old(each), factory_password_)));
    places_[parts.compute.back()] = {index, static_cast<std::size_t>(each - 1)};
  }
  for (int each = 1; each <= sku_.switches; ++each) {
    parts.switches.push_back(
        adopt(std::make_unique<switch_tray>(identity_of(rack, device_kind::switch_tray, each), *this,
                                            trees.at("switch_tray"), starts_old(each), factory_password_)));
    places_[parts.switches.back()] = {index, static_cast<std::size_t>(sku_.compute + each - 1)};
  }
  for (int each = 1; each <= sku_.shelves; ++each) {
    parts.shelves.push_back(
        adopt(std::make_unique<power_shelf>(identity_of(rack, device_kind::power_shelf, each), *this,
                                            trees.at("power_shelf"), factory_password_)));
  }
  for (const int ordinal : {1, 2}) {
    parts.pdus.push_back(
        adopt(std::make_unique<rack_pdu>(identity_of(rack, device_kind::rack_pdu, ordinal), *this,
                                         trees.at("rack_pdu"), factory_password_, family_of_pdu(ordinal))));
  }
  if (options_.rack_controllers) {
    adopt(std::make_unique<rack_controller>(identity_of(rack, device_kind::rack_controller, 1), *this,
                                            trees.at("rack_controller"), factory_password_));
  }
}

std::string site_model::wall(instant when) const {
  const auto point = options_.wall_start +
                     std::chrono::duration_cast<std::chrono::system_clock::duration>(when - options_.start);
  const std::time_t seconds = std::chrono::system_clock::to_time_t(point);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 40> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  const auto rest =
      std::chrono::duration_cast<std::chrono::milliseconds>(point.time_since_epoch()).count() % 1000;
  return text.data() + format(".%03d+00:00", static_cast<int>(rest));
}

void site_model::move_physics(instant to) {
  const instant stop = std::min(to, tick_end_);
  loop_.advance(std::chrono::duration<double>(stop - now_).count());
  now_ = stop;
  if (now_ < tick_end_) {
    return;
  }
  tick_end_ += coolant_tick;
  loop_.tick(faults_, now_);
  watch_heat(now_);
}

// Silicon protects itself: it slows down, and then takes its host with it.
void site_model::watch_heat(instant now) {
  bool changed = false;
  for (std::size_t rack = 0; rack < racks_.size(); ++rack) {
    const bool hot = loop_.plant().rack(rack).hottest_die_c > throttle_release_c;
    for (compute_tray* const each : racks_[rack].compute) {
      if (!hot && !each->throttled()) {
        continue;
      }
      const std::size_t tray = places_.at(each).branch;
      for (int gpu = 0; gpu < sku_.gpus; ++gpu) {
        const double celsius = loop_.plant().die_c(rack, tray, static_cast<std::size_t>(gpu));
        changed |= each->gpu_is_at(gpu, celsius, now);
      }
    }
  }
  if (changed) {
    refresh_power();
  }
}

std::optional<instant> site_model::next_due() const {
  const auto planned = agenda_.next();
  if (!loop_.restless()) {
    return planned;
  }
  return planned ? std::min(*planned, tick_end_) : tick_end_;
}

void site_model::refresh_power() {
  std::vector<double> dies;
  for (const auto& [where, at] : places_) {
    dies.clear();
    double through = 0;
    if (where->identity().kind == device_kind::compute_tray) {
      const auto* const host = static_cast<const compute_tray*>(where);
      for (int gpu = 0; gpu < sku_.gpus; ++gpu) {
        dies.push_back(host->gpu_power_w(gpu) / 1000.0);
        through += dies.back();
      }
    }
    loop_.set_heat(at.rack, at.branch, std::max(0.0, where->power_kw() - through), dies);
  }
  look_for_overload(now_);
}

void site_model::power_changed(device& changed, instant now) {
  if (changed.identity().kind == device_kind::rack_pdu) {
    feed_shelves(changed.identity().rack, now);
  }
  if (changed.identity().kind == device_kind::power_shelf) {
    feed_rack(changed.identity().rack, now);
  }
  refresh_power();
}

// Outlet n of the first PDU is the A feed of shelf n, of the second its B feed.
void site_model::feed_shelves(int rack, instant now) {
  const rack_parts& parts = racks_[static_cast<std::size_t>(rack - 1)];
  for (std::size_t index = 0; index < parts.shelves.size(); ++index) {
    const int outlet = static_cast<int>(index) + 1;
    parts.shelves[index]->feeds(parts.pdus[0]->outlet_on(outlet), parts.pdus[1]->outlet_on(outlet), now);
  }
}

double site_model::feed_w(const device& pdu, int outlet) const {
  const rack_parts& parts = racks_[static_cast<std::size_t>(pdu.identity().rack - 1)];
  const auto index = static_cast<std::size_t>(outlet - 1);
  return index < parts.shelves.size() ? parts.shelves[index]->input_w(pdu.identity().ordinal == 1, now_)
                                      : 0.0;
}

// Shelves share the rack's load; one that carries too much for too long trips, and the rest carry more.
void site_model::look_for_overload(instant now) {
  for (const rack_parts& rack : racks_) {
    for (power_shelf* const each : rack.shelves) {
      each->loaded(shelf_output_w(*each), now);
    }
  }
}

// Half of the shelves carry the BMCs of a rack.
void site_model::feed_rack(int rack, instant now) {
  const rack_parts& parts = racks_[static_cast<std::size_t>(rack - 1)];
  const auto on = std::count_if(parts.shelves.begin(), parts.shelves.end(),
                                [](const power_shelf* each) { return each->output_on(); });
  const bool enough = 2 * static_cast<std::size_t>(on) >= parts.shelves.size();
  for (compute_tray* const each : parts.compute) {
    each->standby_power(enough, now);
  }
  for (switch_tray* const each : parts.switches) {
    each->standby_power(enough, now);
  }
  refresh_power();
}

void site_model::host_booted(const device& booted, const std::string& boot_uri, instant) {
  if (hooks_.on_host_boot && booted.identity().kind == device_kind::compute_tray) {
    hooks_.on_host_boot(booted.identity().member, boot_uri);
  }
}

void site_model::host_off(const device& gone, instant) {
  refresh_power();
  if (hooks_.on_host_off && gone.identity().kind == device_kind::compute_tray) {
    hooks_.on_host_off(gone.identity().member);
  }
}

double site_model::outlet_c(const device& tray) const {
  const place& at = places_.at(&tray);
  return loop_.plant().tray(at.rack, at.branch).outlet_c;
}

double site_model::inlet_c(const device& tray) const {
  return loop_.plant().rack(places_.at(&tray).rack).inlet_c;
}

double site_model::gpu_c(const device& tray, int gpu) const {
  const place& at = places_.at(&tray);
  return loop_.plant().die_c(at.rack, at.branch, static_cast<std::size_t>(gpu));
}

rack_coolant site_model::coolant(int rack) const {
  if (rack < 1 || rack > options_.racks) {
    return {};
  }
  const physics::rack_truth truth = loop_.plant().rack(static_cast<std::size_t>(rack - 1));
  return {truth.flow_lpm, loop_.plant().truth().dp_kpa, truth.inlet_c, truth.return_c, truth.removed_kw};
}

rack_coolant site_model::shown_coolant(int rack) const {
  if (rack < 1 || rack > options_.racks) {
    return {};
  }
  const physics::plant_shown& all = loop_.shown();
  const physics::rack_shown& shown = all.racks.at(static_cast<std::size_t>(rack - 1));
  // What it reckons from its own sensors.
  const double mean_c = 0.5 * (shown.inlet_c + shown.return_c);
  const double heat = physics::mass_flow_kg_per_s(shown.flow_lpm, shown.inlet_c) *
                      physics::heat_capacity_kj_per_kg_k(mean_c) * (shown.return_c - shown.inlet_c);
  return {shown.flow_lpm, all.dp_kpa, shown.inlet_c, shown.return_c, heat};
}

std::vector<std::string> site_model::racks() const {
  std::vector<std::string> names;
  for (int rack = 1; rack <= options_.racks; ++rack) {
    names.push_back(format("r%02d", rack));
  }
  return names;
}

double site_model::rack_power_w(int rack) const {
  const rack_parts& parts = racks_[static_cast<std::size_t>(rack - 1)];
  double kw = 0;
  for (const compute_tray* const each : parts.compute) {
    kw += each->power_kw();
  }
  for (const switch_tray* const each : parts.switches) {
    kw += each->power_kw();
  }
  return 1000.0 * kw;
}

double site_model::shelf_output_w(const device& shelf) const {
  const auto* const self = static_cast<const power_shelf*>(&shelf);
  const rack_parts& parts = racks_[static_cast<std::size_t>(shelf.identity().rack - 1)];
  const auto on = std::count_if(parts.shelves.begin(), parts.shelves.end(),
                                [](const power_shelf* each) { return each->output_on(); });
  return self->output_on() ? rack_power_w(shelf.identity().rack) / static_cast<double>(on) : 0.0;
}

bool site_model::fabric_active(int rack) const {
  const auto& switches = racks_[static_cast<std::size_t>(rack - 1)].switches;
  return std::all_of(switches.begin(), switches.end(),
                     [](const switch_tray* each) { return each->host_running(); });
}

bool site_model::link_up(int rack, int gpu_of_rack, int link, instant now) const {
  const auto index = static_cast<std::size_t>(gpu_of_rack / sku_.gpus);
  const compute_tray& host = *racks_[static_cast<std::size_t>(rack - 1)].compute.at(index);
  if (!host.host_running() || !fabric_active(rack)) {
    return false;
  }
  const std::string gpu = "gpu" + std::to_string(gpu_of_rack % sku_.gpus);
  const std::string& member = host.identity().member;
  return faults_.find_part(fault_kind::link_down, member, gpu + "/nvlink" + std::to_string(link),
                           "gpu0/nvlink0", now) == nullptr &&
         faults_.find_part(fault_kind::missing_gpu, member, gpu, "gpu0", now) == nullptr;
}

// Link l of GPU g runs to ASIC l modulo all ASICs of the rack; each ASIC has a block of ports a GPU.
bool site_model::port_carries(int switch_ordinal, int asic, int port, int& gpu_of_rack, int& link) const {
  const int asics = sku_.asics * sku_.switches;
  const int block = sku_.nvlinks / asics;
  if (block == 0) {
    return false;
  }
  const int plane = (switch_ordinal - 1) * sku_.asics + asic;
  gpu_of_rack = port / block;
  link = (port % block) * asics + plane;
  return gpu_of_rack < sku_.gpus * sku_.compute && link < sku_.nvlinks;
}

device* site_model::find_member(std::string_view member) const {
  const auto found = by_member_.find(member);
  return found == by_member_.end() ? nullptr : found->second;
}

compute_tray* site_model::find_compute(std::string_view member) const {
  device* const found = find_member(member);
  return found != nullptr && found->identity().kind == device_kind::compute_tray
             ? static_cast<compute_tray*>(found)
             : nullptr;
}

void site_model::set_load(const std::string& member, double fraction, instant now) {
  advance(now);
  if (compute_tray* const loaded = find_compute(member); loaded != nullptr && !patterns_.contains(loaded)) {
    loaded->set_load(std::clamp(fraction, 0.0, 1.0));
    refresh_power();
  }
}

std::string site_model::dmi_serial(const std::string& member, instant now) const {
  const compute_tray* const host = find_compute(member);
  if (host == nullptr) {
    return {};
  }
  return host->identity().serial +
         (faults_.find(fault_kind::wrong_agent_serial, member, now) != nullptr ? "X" : "");
}

std::vector<std::string> site_model::gpu_serials(const std::string& member, instant now) const {
  std::vector<std::string> serials;
  const compute_tray* const host = find_compute(member);
  for (int gpu = 0; host != nullptr && gpu < sku_.gpus; ++gpu) {
    if (faults_.find_part(fault_kind::missing_gpu, member, "gpu" + std::to_string(gpu), "gpu0", now) ==
        nullptr) {
      serials.push_back(host->identity().serial + "-GPU_" + std::to_string(gpu));
    }
  }
  return serials;
}

std::vector<announced_bmc> site_model::announced(instant now) const {
  std::vector<announced_bmc> lines;
  for (const auto& each : devices_) {
    const device_identity& identity = each->identity();
    if (identity.kind == device_kind::rack_pdu) {
      continue;  // wired by hand: it asks for no lease
    }
    lines.push_back({identity.member, identity.kind, identity.address, each->shown_mac(now)});
  }
  return lines;
}

std::vector<device_identity> site_model::devices() const {
  std::vector<device_identity> all;
  for (const auto& each : devices_) {
    all.push_back(each->identity());
  }
  return all;
}

void site_model::set_certificate(const std::string& address, const std::string& sha256) {
  if (const auto found = by_address_.find(address); found != by_address_.end()) {
    found->second->set_certificate_sha256(sha256);
  }
}

}  // namespace busbar::sim
