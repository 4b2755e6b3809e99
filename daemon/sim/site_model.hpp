// The site's implementation; only site*.cpp include it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/sim/compute_tray.hpp"
#include "daemon/sim/coolant_unit.hpp"
#include "daemon/sim/physics/load_pattern.hpp"
#include "daemon/sim/power_shelf.hpp"
#include "daemon/sim/rack_controller.hpp"
#include "daemon/sim/rack_pdu.hpp"
#include "daemon/sim/site.hpp"
#include "daemon/sim/switch_tray.hpp"

namespace busbar::sim {

class site_model final : public site, public environment {
 public:
  site_model(site_options options, profile timings, sku_data sku);

  void set_hooks(site_hooks hooks) override { hooks_ = std::move(hooks); }
  http_reply handle(const std::string& address, const http_request& request, instant now) override;
  bool reachable(const std::string& address, instant now) override;
  instant service_time(const std::string& address, instant now) override;
  std::vector<std::string> metric_reports(const std::string& address, instant now) override;
  std::optional<instant> next_due() const override;
  void advance(instant now) override;
  absl::StatusOr<std::uint64_t> add_fault(const fault_request& request, instant now) override;
  std::size_t clear_faults(std::string_view kind, std::string_view target, instant now) override;
  std::vector<fault_row> faults(instant now) const override;
  bool fault_active(fault_kind kind, const std::string& member, instant now) const override;
  std::optional<double> fault_severity(fault_kind kind, const std::string& member,
                                       instant now) const override;
  std::optional<double> register_value(std::string_view point, instant now) override;
  absl::Status set_register(std::string_view point, double value, const std::string& peer,
                            instant now) override;
  std::map<oid_path, mib_value> snmp_objects(const std::string& address, instant now) override;
  absl::Status set_snmp_object(const std::string& address, const oid_path& object, std::int64_t value,
                               const std::string& peer, const std::string& user, instant now) override;
  absl::StatusOr<std::string> truth(std::string_view path, instant now) override;
  performance measure(const std::string& member, int gpu, std::string_view probe, std::string_view metric,
                      instant now) override;
  void set_load(const std::string& member, double fraction, instant now) override;
  absl::StatusOr<std::size_t> set_pattern(std::string_view pattern, std::string_view target,
                                          instant now) override;
  std::string dmi_serial(const std::string& member, instant now) const override;
  std::vector<std::string> gpu_serials(const std::string& member, instant now) const override;
  std::vector<announced_bmc> announced(instant now) const override;
  std::vector<device_identity> devices() const override;
  void set_certificate(const std::string& address, const std::string& sha256) override;
  const site_options& options() const override { return options_; }
  const std::string& factory_password() const override { return factory_password_; }
  const std::string& reader_password() const override { return reader_password_; }
  double rated_lpm() const override { return loop_.plant().design().rack_rated_lpm; }
  const std::string& pdu_secret() const override { return pdu_secret_; }
  std::string save() const override;
  absl::Status restore(const std::string& saved, instant now) override;

  const profile& timings() const override { return timings_; }
  const sku_data& sku() const override { return sku_; }
  const fault_book& faults() const override { return faults_; }
  agenda& schedule() override { return agenda_; }
  std::uint64_t seed() const override { return options_.seed; }
  std::string wall(instant when) const override;
  void power_changed(device& changed, instant now) override;
  void host_booted(const device& booted, const std::string& boot_uri, instant now) override;
  void host_off(const device& gone, instant now) override;
  void event(const device& source, std::string message_id, std::string message, std::string origin) override;
  double outlet_c(const device& tray) const override;
  double inlet_c(const device& tray) const override;
  double gpu_c(const device& tray, int gpu) const override;
  coolant_side& loop() override { return loop_; }
  const coolant_side& loop() const override { return loop_; }
  rack_coolant coolant(int rack) const override;
  rack_coolant shown_coolant(int rack) const override;
  std::vector<std::string> racks() const override;
  double shelf_output_w(const device& shelf) const override;
  double feed_w(const device& pdu, int outlet) const override;
  bool fabric_active(int rack) const override;
  bool link_up(int rack, int gpu_of_rack, int link, instant now) const override;
  bool port_carries(int switch_ordinal, int asic, int port, int& gpu_of_rack, int& link) const override;

 private:
  struct rack_parts {
    std::vector<compute_tray*> compute;
    std::vector<switch_tray*> switches;
    std::vector<power_shelf*> shelves;
    std::vector<rack_pdu*> pdus;  // feeds A, B
  };
  struct place {  // of a tray in the coolant loop
    std::size_t rack = 0;
    std::size_t branch = 0;
  };

  void build();
  void build_rack(int rack, const std::map<std::string, std::shared_ptr<const resource_tree>>& trees);
  template <class Device>
  Device* adopt(std::unique_ptr<Device> made);
  device_identity identity_of(int rack, device_kind kind, int ordinal) const;
  void move_physics(instant to);  // to the end of the present tick at most
  void watch_heat(instant now);
  void refresh_power();
  void feed_rack(int rack, instant now);
  void feed_shelves(int rack, instant now);
  void look_for_overload(instant now);
  void blow(const std::string& member, instant now);
  void apply_faults(instant now);
  void play_patterns(instant now);
  void note(journal_record record, instant now);
  absl::Status check_fault(const fault_request& request) const;
  double rack_power_w(int rack) const;
  device* find_member(std::string_view member) const;
  compute_tray* find_compute(std::string_view member) const;

  site_options options_;
  profile timings_;
  sku_data sku_;
  site_hooks hooks_;
  agenda agenda_;
  fault_book faults_;
  coolant_side loop_;
  std::string factory_password_;
  std::string reader_password_;
  std::string pdu_secret_;
  std::vector<std::unique_ptr<device>> devices_;
  std::map<std::string, device*, std::less<>> by_address_;
  std::map<std::string, device*, std::less<>> by_member_;
  std::vector<rack_parts> racks_;
  std::map<const device*, place> places_;
  std::map<const device*, physics::stream> service_;
  struct played {
    physics::load_pattern pattern{};
    instant since{0};
  };
  std::map<compute_tray*, played> patterns_;
  bool playing_ = false;
  coolant_unit* cdu_ = nullptr;
  instant now_{0};
  instant tick_end_{0};
  std::uint64_t requests_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace busbar::sim
