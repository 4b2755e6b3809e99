// A device that answers Redfish: what all BMCs have in common. A kind adds values, writable properties and
// actions. Pure: all change comes through calls that say what time it is, and through the agenda.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "daemon/sim/access_control.hpp"
#include "daemon/sim/environment.hpp"
#include "daemon/sim/firmware_store.hpp"
#include "daemon/sim/http_message.hpp"
#include "daemon/sim/json.hpp"
#include "daemon/sim/resource_tree.hpp"

namespace busbar::sim {

inline constexpr std::string_view factory_user = "root";

// What the journal says of a request beside its line. Never a secret.
struct request_note {
  std::string user;
  std::string act;       // account_create, password_change, update_push, manager_reset, reset, ...
  std::string argument;  // the account's name, the component, the reset type
};

class device {
 public:
  device(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
         bool starts_old, const std::string& factory_password);
  virtual ~device() = default;
  device(const device&) = delete;
  device& operator=(const device&) = delete;

  const device_identity& identity() const { return identity_; }
  bool reachable() const { return bmc_alive_; }
  http_reply handle(const http_request& request, instant now, request_note& note);

  // Standby power came or went: a tray has it from the shelves, a shelf from its feeds. CDU, rack controller
  // and PDUs never lose it.
  void standby_power(bool present, instant now);
  bool has_standby_power() const { return standby_power_; }
  // What faults changed in the device itself (accounts, sessions, leaks): called when one begins or ends.
  virtual void faults_changed(instant now);

  virtual double power_kw() const { return 0; }
  virtual bool host_running() const { return false; }
  virtual bool host_powered() const { return false; }
  virtual json truth(instant now) const;
  // All of its MetricReports, as an event stream carries them.
  std::vector<json> metric_reports(instant now) const;
  virtual json save() const;
  virtual void load(const json& saved);

  access_control& control() { return access_; }
  std::string shown_mac(instant now) const;
  // What faults may name of it.
  virtual std::vector<std::string> detectors() const { return {}; }
  virtual std::vector<std::string> sensors() const { return {}; }
  virtual std::vector<std::string> outlets() const { return {}; }
  std::vector<std::string> firmware_components() const { return firmware_.components(); }
  const std::string& certificate_sha256() const { return certificate_sha256_; }
  void set_certificate_sha256(std::string digest) { certificate_sha256_ = std::move(digest); }

 protected:
  using action_reply = std::optional<http_reply>;

  virtual json value(const value_name& name, instant now) const;
  virtual bool hidden(std::string_view path, instant now) const;
  virtual action_reply post(const std::string& path, const json& body, instant now, request_note& note);
  virtual action_reply patch(const std::string& path, const json& body, instant now, request_note& note);
  virtual void standby_lost(instant) {}
  virtual void bmc_started(instant) {}

  bool faulty(fault_kind kind, instant now) const { return find_fault(kind, now) != nullptr; }
  const fault* find_fault(fault_kind kind, instant now) const;
  const fault* find_fault(fault_kind kind, std::string_view part, std::string_view first, instant now) const;
  std::string shown_serial(instant now) const;
  int shown_ordinal(instant now) const;
  double noisy(double value, double deviation, std::string_view point, instant now) const;
  environment& around() { return around_; }
  const environment& around() const { return around_; }
  firmware_store& firmware() { return firmware_; }
  const firmware_store& firmware() const { return firmware_; }
  const resource_tree& tree() const { return *tree_; }

 private:
  http_reply route(const http_request& request, const std::string& path, std::string_view query,
                   const access& who, instant now, request_note& note);
  http_reply get(const std::string& path, std::string_view query, instant now) const;
  std::optional<json> body_of(const std::string& path, instant now) const;
  std::optional<json> dynamic_body(const std::string& path, instant now) const;
  std::optional<json> session_body(std::string_view id) const;
  std::optional<json> account_body(std::string_view name, instant now) const;
  std::optional<json> report_body(const std::string& path, instant now) const;
  json metric_report(const std::string& path, const std::string& name, const std::vector<report_row>& rows,
                     instant now) const;
  void expand_members(json& body, instant now) const;
  http_reply do_post(const http_request& request, const std::string& path, const access& who, instant now,
                     request_note& note);
  http_reply do_patch(const std::string& path, const json& body, const access& who, instant now,
                      request_note& note);
  http_reply do_delete(const std::string& path, const access& who, request_note& note);
  http_reply login(const http_request& request, instant now, request_note& note);
  http_reply create_account(const json& body, request_note& note);
  http_reply change_account(const std::string& name, const json& body, const access& who, request_note& note);
  http_reply push_update(const http_request& request, instant now, request_note& note);
  http_reply begin_update(const update_request& update, instant now);
  http_reply simple_update(const json& body, instant now, request_note& note);
  http_reply reset_manager(const json& body, instant now, request_note& note);
  void restart_bmc(instant now);
  void spoil(http_reply& reply, const std::string& path, instant now) const;

  device_identity identity_;
  environment& around_;
  std::shared_ptr<const resource_tree> tree_;
  access_control access_;
  firmware_store firmware_;
  std::string factory_password_;
  std::string certificate_sha256_;
  bool standby_power_ = false;
  bool bmc_alive_ = false;
  std::uint64_t bmc_generation_ = 0;  // a pending BMC start of an earlier generation is void
  std::uint64_t requests_ = 0;
  std::set<fault_kind> in_force_;  // whose beginning was applied
  instant bmc_started_{0};
  mutable std::uint64_t points_reported_ = 0;  // rows of MetricReports that were given out
};

// A version 4 UUID made of a hash.
std::string uuid_of(std::uint64_t key);
// Digits of a part that names one: gpu2 -> 2; nullopt when there are none.
std::optional<int> number_in(std::string_view text);
std::optional<int> as_number(std::string_view text);

}  // namespace busbar::sim
