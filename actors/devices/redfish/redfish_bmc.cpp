#include "actors/devices/redfish/redfish_bmc.hpp"

#include <utility>

#include "actors/devices/redfish/driver.hpp"
#include "actors/devices/redfish/telemetry_reader.hpp"

namespace busbar::devices::redfish {
namespace {

driver_ptr make_driver(std::string address, MemberKind kind, const std::shared_ptr<http_transport>& transport,
                       const std::shared_ptr<scheduler>& loop, const device_options& options) {
  auto made = std::make_shared<driver>();
  made->device = std::make_shared<device>(std::move(address), transport, loop, options);
  made->kind = kind;
  return made;
}

// A narrower view of a controller's driver: it holds the driver's parts, not the bmc whose end closes them.
class redfish_valve final : public valve_port {
 public:
  redfish_valve(driver_ptr made, std::shared_ptr<scheduler> loop, std::string connector)
      : driver_(std::move(made)), loop_(std::move(loop)), connector_(std::move(connector)) {}

  void read(answer<valve_facts> reply) override {
    loop_->post([d = driver_, connector = connector_, reply = std::move(reply)] {
      start<absl::StatusOr<valve_facts>>(read_valve(d, connector), reply);
    });
  }
  void write(double percent, done reply) override {
    loop_->post([d = driver_, connector = connector_, percent, reply = std::move(reply)] {
      start<absl::Status>(write_valve(d, connector, percent), reply);
    });
  }

 private:
  const driver_ptr driver_;
  const std::shared_ptr<scheduler> loop_;
  const std::string connector_;
};

class redfish_bmc final : public bmc {
 public:
  redfish_bmc(driver_ptr made, std::shared_ptr<scheduler> loop)
      : driver_(std::move(made)), loop_(std::move(loop)) {}
  ~redfish_bmc() override {
    loop_->post([d = driver_, telemetry = telemetry_] {
      if (*telemetry) (*telemetry)->stop();
      d->device->close();
    });
  }

  void start_telemetry(telemetry_plan plan) override {
    loop_->post([d = driver_, telemetry = telemetry_, loop = loop_, plan = std::move(plan)] {
      if (*telemetry) (*telemetry)->stop();
      *telemetry = std::make_shared<telemetry_reader>(d, loop, plan);
      (*telemetry)->start();
    });
  }
  void stop_telemetry() override {
    loop_->post([telemetry = telemetry_] {
      if (*telemetry) (*telemetry)->stop();
      telemetry->reset();
    });
  }

  void probe(answer<probe_facts> reply) override { run(&redfish::probe, std::move(reply)); }
  void pin(std::string certificate_sha256) override {
    loop_->post([d = driver_, certificate_sha256] { d->device->set_pin(certificate_sha256); });
  }
  void login(credentials login, answer<session_facts> reply) override {
    loop_->post([d = driver_, login, reply] { d->device->log_in(login, reply); });
  }
  void delete_session(std::string uri, done reply) override {
    run(&redfish::delete_session, std::move(reply), std::move(uri));
  }
  void forget_wrong_logins() override {
    loop_->post([d = driver_] { d->device->forget_wrong_logins(); });
  }
  void count_wrong_logins(std::map<std::string, int> so_far) override {
    loop_->post([d = driver_, so_far = std::move(so_far)] { d->device->count_wrong_logins(so_far); });
  }
  void on_session(std::function<void(session_facts)> listener) override {
    loop_->post([d = driver_, listener] { d->device->on_session(listener); });
  }

  void identify(answer<identity_facts> reply) override { run(&redfish::identify, std::move(reply)); }
  void list_accounts(answer<std::vector<account_facts>> reply) override {
    run(&redfish::list_accounts, std::move(reply));
  }
  void create_account(credentials account, std::string role, done reply) override {
    run(&redfish::create_account, std::move(reply), std::move(account), std::move(role));
  }
  void set_password(credentials account, done reply) override {
    run(&redfish::set_password, std::move(reply), std::move(account));
  }
  void delete_account(std::string user, done reply) override {
    run(&redfish::delete_account, std::move(reply), std::move(user));
  }

  void read_power(answer<power_facts> reply) override { run(&redfish::read_power, std::move(reply)); }
  void reset(reset_type type, done reply) override { run(&redfish::reset, std::move(reply), type); }
  void reset_if(reset_type type, act_check allowed, done reply) override {
    run(&redfish::reset_if, std::move(reply), type, std::move(allowed));
  }
  void set_boot_once(boot_facts wanted, done reply) override {
    run(&redfish::set_boot_once, std::move(reply), std::move(wanted));
  }
  void read_boot_once(answer<boot_facts> reply) override { run(&redfish::read_boot_once, std::move(reply)); }

  void read_detectors(answer<std::vector<detector_facts>> reply) override {
    run(&redfish::read_detectors, std::move(reply));
  }
  void read_inventory(answer<inventory_facts> reply) override {
    run(&redfish::read_inventory, std::move(reply));
  }
  void read_firmware(answer<std::vector<component_facts>> reply) override {
    run(&redfish::read_firmware, std::move(reply));
  }
  void push_firmware(std::string component, std::string image_path, answer<std::string> reply) override {
    run(&redfish::push_firmware, std::move(reply), std::move(component), std::move(image_path));
  }
  void read_task(std::string uri, answer<task_facts> reply) override {
    run(&redfish::read_task, std::move(reply), std::move(uri));
  }
  void find_update(std::string component, answer<std::string> reply) override {
    run(&redfish::find_update, std::move(reply), std::move(component));
  }
  void find_unnamed_update(answer<std::string> reply) override {
    run(&redfish::find_unnamed_update, std::move(reply));
  }
  void reset_manager(done reply) override { run(&redfish::reset_manager, std::move(reply)); }

  void read_bios(std::vector<std::string> names, answer<attribute_map> reply) override {
    run(&redfish::read_bios, std::move(reply), std::move(names));
  }
  void write_bios(value_map values, done reply) override {
    run(&redfish::write_bios, std::move(reply), std::move(values));
  }
  void read_device(std::vector<std::string> names, answer<attribute_map> reply) override {
    run(&redfish::read_device, std::move(reply), std::move(names));
  }
  void write_device(value_map values, done reply) override {
    run(&redfish::write_device, std::move(reply), std::move(values));
  }

  void read_nvlink(answer<nvlink_facts> reply) override { run(&redfish::read_nvlink, std::move(reply)); }

  std::shared_ptr<valve_port> valve(std::string connector) override {
    return std::make_shared<redfish_valve>(driver_, loop_, std::move(connector));
  }

 private:
  // Starts a procedure on the I/O thread and gives its result to the caller.
  template <class T, class... Parameters, class... Arguments>
  void run(task<T> (*procedure)(driver_ptr, Parameters...), std::function<void(T)> reply,
           Arguments... arguments) {
    loop_->post([d = driver_, procedure, reply = std::move(reply), ... values = std::move(arguments)] {
      start<T>(procedure(d, values...), reply);
    });
  }

  const driver_ptr driver_;
  const std::shared_ptr<scheduler> loop_;
  // Of the I/O thread; the tasks that use it may outlive this.
  const std::shared_ptr<std::shared_ptr<telemetry_reader>> telemetry_ =
      std::make_shared<std::shared_ptr<telemetry_reader>>();
};

class redfish_cooling final : public cooling_source {
 public:
  redfish_cooling(driver_ptr made, credentials login, std::shared_ptr<scheduler> loop)
      : driver_(std::move(made)), login_(std::move(login)), loop_(std::move(loop)) {}
  ~redfish_cooling() override {
    loop_->post([d = driver_] { d->device->close(); });
  }

  void read(std::string rack, answer<cooling_facts> reply) override {
    loop_->post([d = driver_, login = login_, rack, place = place_, reply] {
      start<absl::StatusOr<cooling_facts>>(read_cooling(d, login, rack, place), reply);
    });
  }
  void set_place(cooling_place place) override { place_ = std::move(place); }
  void pin(std::string certificate_sha256) override {
    loop_->post([d = driver_, certificate_sha256] { d->device->set_pin(certificate_sha256); });
  }

 private:
  const driver_ptr driver_;
  const credentials login_;
  const std::shared_ptr<scheduler> loop_;
  cooling_place place_;  // the caller's thread
};

class redfish_factory final : public driver_factory {
 public:
  redfish_factory(std::shared_ptr<http_transport> transport, std::shared_ptr<scheduler> loop,
                  device_options options)
      : transport_(std::move(transport)), loop_(std::move(loop)), options_(options) {}

  std::shared_ptr<bmc> make_bmc(std::string address, MemberKind kind) override {
    return make_redfish_bmc(std::move(address), kind, transport_, loop_, options_);
  }
  std::shared_ptr<cooling_source> make_cooling_source(std::string address, credentials login) override {
    return make_redfish_cooling(std::move(address), std::move(login), transport_, loop_, options_);
  }

 private:
  const std::shared_ptr<http_transport> transport_;
  const std::shared_ptr<scheduler> loop_;
  const device_options options_;
};

}  // namespace

std::shared_ptr<bmc> make_redfish_bmc(std::string address, MemberKind kind,
                                      std::shared_ptr<http_transport> transport,
                                      std::shared_ptr<scheduler> loop, device_options options) {
  return std::make_shared<redfish_bmc>(make_driver(std::move(address), kind, transport, loop, options), loop);
}

std::shared_ptr<cooling_source> make_redfish_cooling(std::string address, credentials login,
                                                     std::shared_ptr<http_transport> transport,
                                                     std::shared_ptr<scheduler> loop,
                                                     device_options options) {
  auto made = make_driver(std::move(address), MemberKind::MEMBER_KIND_UNSPECIFIED, transport, loop, options);
  return std::make_shared<redfish_cooling>(std::move(made), std::move(login), loop);
}

std::shared_ptr<driver_factory> make_redfish_factory(std::shared_ptr<http_transport> transport,
                                                     std::shared_ptr<scheduler> loop,
                                                     device_options options) {
  return std::make_shared<redfish_factory>(std::move(transport), std::move(loop), options);
}

}  // namespace busbar::devices::redfish
