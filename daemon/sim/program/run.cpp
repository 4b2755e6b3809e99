// busbar-sim run: one site, its faces, its control socket, its files. Threads: the receive thread of the
// HTTPS face, the model loop, the control socket's, and this one, which waits for the signal that ends it.
#include <pthread.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

#include "daemon/sim/agent_face.hpp"
#include "daemon/sim/certificate.hpp"
#include "daemon/sim/control.hpp"
#include "daemon/sim/delivery_note.hpp"
#include "daemon/sim/https_face.hpp"
#include "daemon/sim/json.hpp"
#include "daemon/sim/modbus_face.hpp"
#include "daemon/sim/model_loop.hpp"
#include "daemon/sim/physics/noise.hpp"
#include "daemon/sim/program/commands.hpp"
#include "daemon/sim/snmp_face.hpp"

#ifndef BUSBAR_SIM_AGENT_FACE
namespace busbar::sim {
std::unique_ptr<agent_face> make_agent_face(agent_services) {
  return nullptr;
}
}  // namespace busbar::sim
#endif

namespace busbar::sim {

namespace {

namespace fs = std::filesystem;
constexpr std::uint16_t redfish_port = 8443;
constexpr std::uint16_t modbus_port = 5020;
constexpr std::uint16_t snmp_port = 1161;
constexpr std::string_view modbus_map = "lab_cdu";
constexpr auto save_interval = std::chrono::seconds(2);

int fail(int code, const std::string& why) {
  std::cerr << "busbar-sim: " << why << '\n';
  return code;
}

class running_site {
 public:
  running_site(std::unique_ptr<site> model, std::string folder, bool ideal, bool stamp_writes);
  ~running_site();
  absl::Status start();

 private:
  absl::Status open_faces();
  absl::Status resume();
  void hook();
  void start_agents();
  std::function<void(std::uint64_t, instant)> stamper();
  modbus_backend registers();
  snmp_backend objects();
  std::function<void(const std::string&, const std::string&, instant)> event_stamper();
  void keep_saving();
  void save();
  void look_at_certificate(const std::string& address);
  std::string answer(const std::string& line);
  json answer_on_loop(const json& request);
  std::string certificate_path(const std::string& address, bool changed) const;
  std::string host_name(const std::string& address) const;

  std::unique_ptr<site> model_;
  std::string folder_;
  std::ofstream journal_;
  std::string saved_;
  std::map<std::string, std::string> members_;  // by address
  std::map<std::string, bool> certificate_changed_;
  model_loop loop_;
  https_face face_;
  physics::stream luck_;  // which Modbus requests are lost
  modbus_face modbus_;
  snmp_face snmp_;
  control_server control_;
  std::unique_ptr<agent_face> agents_;
};

running_site::running_site(std::unique_ptr<site> model, std::string folder, bool ideal, bool stamp_writes)
    : model_(std::move(model)),
      folder_(std::move(folder)),
      face_(loop_, face_backend{[this](const std::string& address) {
                                  return model_->reachable(address, monotonic_now());
                                },
                                [this, ideal](const std::string& address) {
                                  return ideal ? instant{0} : model_->service_time(address, monotonic_now());
                                },
                                [this](const std::string& address, const http_request& request) {
                                  return model_->handle(address, request, monotonic_now());
                                },
                                stamp_writes ? stamper() : nullptr, stamp_writes ? event_stamper() : nullptr,
                                [this](const std::string& address) {
                                  return model_->metric_reports(address, monotonic_now());
                                }}),
      luck_(model_->options().seed ^ 0x6d6f64),
      modbus_(loop_, registers()),
      snmp_(loop_, objects(), model_->pdu_secret()),
      control_(folder_ + "/sim.sock", [this](const std::string& line) { return answer(line); }) {
  for (const device_identity& each : model_->devices()) {
    members_[each.address] = each.member;
  }
}

// A row of its own in the journal, for whoever measures from a reply.
std::function<void(std::uint64_t, instant)> running_site::stamper() {
  return [this](std::uint64_t number, instant when) {
    loop_.post([this, number, when] {
      journal_ << json{{"number", number}, {"written_ns", when.count()}}.dump() << std::endl;
    });
  };
}

// Events of leaks alone: it is their way that is measured.
std::function<void(const std::string&, const std::string&, instant)> running_site::event_stamper() {
  return [this](const std::string& address, const std::string& event, instant when) {
    if (event.find("LeakDetected") == std::string::npos) {
      return;
    }
    loop_.post([this, address, when] {
      journal_ << json{{"event", address}, {"message", "LeakDetected"}, {"written_ns", when.count()}}.dump()
               << std::endl;
    });
  };
}

modbus_backend running_site::registers() {
  const auto severity = [this](fault_kind kind) {
    return model_->fault_severity(kind, "cdu01", monotonic_now());
  };
  return {.read = [this](std::string_view point) { return model_->register_value(point, monotonic_now()); },
          .write =
              [this](std::string_view point, double value, const std::string& peer) {
                return model_->set_register(point, value, peer, monotonic_now());
              },
          .delay =
              [severity] {
                return std::chrono::duration_cast<instant>(
                    std::chrono::duration<double>(severity(fault_kind::modbus_late).value_or(0)));
              },
          .lost =
              [this, severity] {
                return physics::uniform(luck_.next()) < severity(fault_kind::modbus_lost).value_or(0);
              },
          .exception = [severity]() -> std::optional<std::uint8_t> {
            const auto code = severity(fault_kind::modbus_exception);
            return code ? std::optional(static_cast<std::uint8_t>(*code)) : std::nullopt;
          }};
}

snmp_backend running_site::objects() {
  return {.objects =
              [this](const std::string& address) { return model_->snmp_objects(address, monotonic_now()); },
          .set =
              [this](const std::string& address, const oid_path& object, std::int64_t value,
                     const std::string& peer, const std::string& user) {
                return model_->set_snmp_object(address, object, value, peer, user, monotonic_now());
              }};
}

running_site::~running_site() {
  control_.stop();
  modbus_.stop();
  snmp_.stop();
  if (agents_) {
    agents_->stop();
  }
  face_.stop();
  loop_.stop();
  save();
}

std::string running_site::certificate_path(const std::string& address, bool changed) const {
  return folder_ + "/tls/" + address + (changed ? "-changed" : "") + ".pem";
}

std::string running_site::host_name(const std::string& address) const {
  std::string name = members_.at(address);
  for (char& letter : name) {
    letter = letter == '/' ? '-' : letter;
  }
  return name + "-bmc";
}

absl::Status running_site::start() {
  fs::create_directories(folder_ + "/tls");
  journal_.open(folder_ + "/journal.jsonl", std::ios::app);
  if (!journal_) {
    return absl::UnavailableError("cannot write " + folder_ + "/journal.jsonl");
  }
  if (const absl::Status opened = open_faces(); !opened.ok()) {
    return opened;
  }
  if (const absl::Status written = write_delivery_note(*model_, folder_ + "/site", monotonic_now());
      !written.ok()) {
    return written;
  }
  hook();
  start_agents();
  if (const absl::Status resumed = resume(); !resumed.ok()) {
    return resumed;
  }
  loop_.drive([this] { return model_->next_due(); }, [this](instant now) { model_->advance(now); });
  keep_saving();
  loop_.start();
  face_.start();
  modbus_.start();
  snmp_.start();
  return control_.start();
}

absl::Status running_site::open_faces() {
  for (const auto& [address, member] : members_) {
    const auto pair = certificate_at(certificate_path(address, false), host_name(address), address);
    if (!pair.ok()) {
      return pair.status();
    }
    model_->set_certificate(address, pair->sha256);
    if (const absl::Status listening = face_.listen(address, redfish_port, *pair); !listening.ok()) {
      return listening;
    }
  }
  for (const device_identity& each : model_->devices()) {
    const absl::Status listening =
        each.kind == device_kind::cdu        ? modbus_.listen(each.address, modbus_port, modbus_map)
        : each.kind == device_kind::rack_pdu ? snmp_.listen(each.address, snmp_port)
                                             : absl::OkStatus();
    if (!listening.ok()) {
      return listening;
    }
  }
  return absl::OkStatus();
}

absl::Status running_site::resume() {
  std::ifstream in(folder_ + "/site.json");
  if (!in) {
    return absl::OkStatus();
  }
  std::ostringstream text;
  text << in.rdbuf();
  return model_->restore(text.str(), monotonic_now());
}

void running_site::hook() {
  site_hooks hooks;
  hooks.on_request = [this](const journal_record& record) { journal_ << to_json(record) << std::endl; };
  hooks.on_event = [this](const std::string& address, const std::string& event) {
    face_.send_event(address, event);
  };
  hooks.on_certificate_changed = [this](const std::string& address) { look_at_certificate(address); };
  hooks.on_leases_changed = [this] {
    if (const absl::Status written = write_leases(*model_, folder_ + "/site", monotonic_now());
        !written.ok()) {
      std::cerr << "busbar-sim: " << written.message() << '\n';
    }
  };
  hooks.on_host_boot = [this](const std::string& member, const std::string& uri) {
    if (agents_) {
      agents_->host_booted(member, uri);
    }
  };
  hooks.on_host_off = [this](const std::string& member) {
    if (agents_) {
      agents_->host_off(member);
    }
  };
  model_->set_hooks(std::move(hooks));
}

void running_site::look_at_certificate(const std::string& address) {
  const bool changed =
      model_->fault_active(fault_kind::certificate_changed, members_.at(address), monotonic_now());
  bool& shown = certificate_changed_[address];
  if (changed == shown) {
    return;
  }
  const auto pair = certificate_at(certificate_path(address, changed), host_name(address), address);
  if (!pair.ok()) {
    std::cerr << "busbar-sim: " << pair.status().message() << '\n';
    return;
  }
  shown = changed;
  model_->set_certificate(address, pair->sha256);
  face_.replace_certificate(address, *pair);
}

void running_site::start_agents() {
  agent_services services;
  services.measure = [this](const std::string& member, int gpu, const std::string& probe,
                            const std::string& metric) {
    return loop_.call([this, &member, gpu, &probe, &metric] {
      return model_->measure(member, gpu, probe, metric, monotonic_now());
    });
  };
  services.set_load = [this](const std::string& member, double load) {
    loop_.post([this, member, load] { model_->set_load(member, load, monotonic_now()); });
  };
  services.dmi_serial = [this](const std::string& member) {
    return loop_.call([this, &member] { return model_->dmi_serial(member, monotonic_now()); });
  };
  services.gpu_serials = [this](const std::string& member) {
    return loop_.call([this, &member] { return model_->gpu_serials(member, monotonic_now()); });
  };
  services.silent = [this](const std::string& member) {
    return loop_.call(
        [this, &member] { return model_->fault_active(fault_kind::agent_silent, member, monotonic_now()); });
  };
  services.endpoint = [network = model_->options().network](const std::string& rack) {
    return network + "." + std::to_string(std::stoi(rack.substr(1))) + ".250:7443";
  };
  services.sku = model_->sku().name;
  services.state_dir = folder_;
  services.gpus = model_->sku().gpus;
  services.seed = model_->options().seed;
  agents_ = make_agent_face(std::move(services));
}

void running_site::keep_saving() {
  loop_.at(monotonic_now() + save_interval, [this] {
    save();
    keep_saving();
  });
}

void running_site::save() {
  std::string text = model_->save();
  if (text == saved_) {
    return;
  }
  const std::string path = folder_ + "/site.json";
  std::ofstream out(path + ".new", std::ios::trunc);
  out << text;
  out.close();
  std::error_code failed;
  fs::permissions(path + ".new", fs::perms::owner_read | fs::perms::owner_write, failed);
  fs::rename(path + ".new", path, failed);
  saved_ = std::move(text);
}

std::string running_site::answer(const std::string& line) {
  const json request = json::parse(line, nullptr, false);
  if (!request.is_object()) {
    return json{{"error", "the request is no JSON object"}}.dump();
  }
  return loop_.call([this, &request] { return answer_on_loop(request).dump(); });
}

json running_site::answer_on_loop(const json& request) {
  const instant now = monotonic_now();
  const std::string op = request.value("op", "");
  if (op == "truth") {
    const auto text = model_->truth(request.value("path", ""), now);
    return text.ok() ? json{{"result", json::parse(*text)}}
                     : json{{"error", std::string(text.status().message())}};
  }
  if (op == "fault_add") {
    fault_request wanted;
    wanted.kind = request.value("kind", "");
    wanted.target = request.value("target", "");
    wanted.value = request.value("value", "");
    wanted.delay = instant(request.value("at", std::int64_t{0}));
    if (request.contains("for")) {
      wanted.duration = instant(request.value("for", std::int64_t{0}));
    }
    if (request.contains("severity")) {
      wanted.severity = request.value("severity", 0.0);
    }
    const auto id = model_->add_fault(wanted, now);
    return id.ok() ? json{{"result", {{"id", *id}, {"from_ns", (now + wanted.delay).count()}}}}
                   : json{{"error", std::string(id.status().message())}};
  }
  if (op == "load") {
    const auto trays = model_->set_pattern(request.value("pattern", ""), request.value("target", ""), now);
    return trays.ok() ? json{{"result", {{"trays", *trays}}}}
                      : json{{"error", std::string(trays.status().message())}};
  }
  if (op == "factory_password") {  // the socket is its owner's alone
    return {{"result", model_->factory_password()}};
  }
  if (op == "fault_clear") {
    const std::string kind = request.value("kind", "");
    const std::string target = request.value("target", "");
    const std::size_t cleared = model_->clear_faults(kind, target, now);
    if (cleared == 0 && !kind.empty()) {
      return {{"error", "no fault " + kind + (target.empty() ? "" : " on " + target) +
                            " is put on; busbar-sim fault list shows those that are"}};
    }
    return {{"result", {{"cleared", cleared}}}};
  }
  if (op == "fault_list") {
    json rows = json::array();
    for (const fault_row& row : model_->faults(now)) {
      rows.push_back(
          {{"id", row.what.id},
           {"kind", text_of(row.what.kind).name},
           {"target", row.what.part.empty() ? row.what.member : row.what.member + "/" + row.what.part},
           {"severity", row.what.severity},
           {"value", row.what.value},
           {"in_force", row.in_force}});
    }
    return {{"result", rows}};
  }
  return {{"error", "unknown request " + op}};
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace

int run_command(const arguments& line) {
  const char* const named = std::getenv("BUSBAR_SIM_STATE_DIR");
  const std::string folder = line.value("--state-dir", named == nullptr ? "" : named);
  const auto racks = whole_number(line.value("--racks", "1"));
  const auto seed = whole_number(line.value("--seed", "1"));
  if (folder.empty() || !racks || !seed || line.words.size() != 1) {
    return fail(exit_usage, "run needs --state-dir DIR; --racks and --seed are whole numbers");
  }
  site_options options;
  options.racks = static_cast<int>(*racks);
  options.sku = line.value("--sku", "vr-nvl72");
  options.profile = line.value("--profile", "quick");
  options.rack_controllers = !line.has("--no-rack-controllers");
  options.network = line.value("--network", options.network);
  options.plant = line.value("--plant", "");
  options.seed = static_cast<std::uint64_t>(*seed);
  options.start = monotonic_now();
  options.wall_start = std::chrono::system_clock::now();
  auto model = site::make(options);
  if (!model.ok()) {
    return fail(exit_usage, std::string(model.status().message()));
  }
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  raise_descriptor_limit();
  const std::size_t devices = (*model)->devices().size();
  running_site running(std::move(*model), folder, line.has("--ideal"), line.has("--stamp-writes"));
  if (const absl::Status started = running.start(); !started.ok()) {
    return fail(exit_false, std::string(started.message()));
  }
  std::cout << "READY "
            << json{{"racks", options.racks}, {"sku", options.sku},       {"profile", options.profile},
                    {"devices", devices},     {"site", folder + "/site"}, {"ideal", line.has("--ideal")}}
                   .dump()
            << std::endl;
  int received = 0;
  sigwait(&ends, &received);
  return exit_done;
}

}  // namespace busbar::sim
