// A device that is a plain struct: for tests of what stands above the device contract. fake_bmc passes the
// same contract test as the Redfish driver (tests/unit/devices/contract_test.cpp), so what holds on it holds
// on the wire.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/devices/bmc.hpp"

namespace busbar::devices {

struct fake_account {
  std::string password;
  std::string role;
  bool locked = false;  // and the device says so
};

struct fake_task {
  std::string component;
  std::string version;
  task_state state = task_state::running;
};

// The device. Tests read and change it between calls; acts is its journal of what was done to it.
struct fake_device {
  MemberKind kind = journal::COMPUTE_TRAY;
  bool reachable = true;
  std::string certificate = "aa11";
  std::string uuid = "00000000-0000-4000-8000-000000000001";
  std::string vendor = "NVIDIA";
  std::string product = "VR NVL";
  identity_facts identity{"SN1", "c07", "VR NVL Compute Tray", "02:18:01:00:00:07"};

  std::map<std::string, fake_account> accounts{{"root", {"factory", "Administrator"}}};
  std::string change_required_of;  // user who must change the password first
  std::size_t session_limit = 8;
  std::map<std::string, std::string> sessions;  // URI -> user
  int next_session = 1;

  journal::PowerState power = journal::POWER_OFF;
  std::vector<std::string> offered{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle"};
  boot_facts boot{"Disabled", "None", ""};
  std::vector<detector_facts> detectors;
  std::vector<journal::Part> parts;
  std::size_t parts_not_shown = 0;  // announced beyond those
  std::map<std::string, std::string> firmware;
  std::map<std::string, fake_task> tasks;  // URI -> task; push starts one, the test ends it
  bool tasks_name_components = true;       // false: nobody can tell what a task updates
  std::map<std::string, std::string> bios;
  std::map<std::string, std::string> bios_pending;
  std::map<std::string, std::string> device_attributes;
  nvlink_facts nvlink;

  std::vector<std::string>
      acts;  // "login root", "create busbar-1", "password root", "reset On", "push UEFI", ...

  void host_restarted();  // pending BIOS values take effect
  void end_task(const std::string& uri, bool good);
  std::size_t count_acts(std::string_view act) const;
};

class fake_bmc final : public bmc {
 public:
  using poster = std::function<void(std::function<void()>)>;
  // post decides when answers come; by default inline.
  explicit fake_bmc(std::shared_ptr<fake_device> device, poster post = nullptr);

  void probe(answer<probe_facts> reply) override;
  void pin(std::string certificate_sha256) override;
  void login(credentials login, answer<session_facts> reply) override;
  void delete_session(std::string uri, done reply) override;
  void forget_wrong_logins() override;
  void count_wrong_logins(std::map<std::string, int> so_far) override;
  void identify(answer<identity_facts> reply) override;
  void list_accounts(answer<std::vector<account_facts>> reply) override;
  void create_account(credentials account, std::string role, done reply) override;
  void set_password(credentials account, done reply) override;
  void delete_account(std::string user, done reply) override;
  void read_power(answer<power_facts> reply) override;
  void reset(reset_type type, done reply) override;
  void set_boot_once(boot_facts wanted, done reply) override;
  void read_boot_once(answer<boot_facts> reply) override;
  void read_detectors(answer<std::vector<detector_facts>> reply) override;
  void read_inventory(answer<inventory_facts> reply) override;
  void read_firmware(answer<std::vector<component_facts>> reply) override;
  void push_firmware(std::string component, std::string image_path, answer<std::string> reply) override;
  void read_task(std::string uri, answer<task_facts> reply) override;
  void find_update(std::string component, answer<std::string> reply) override;
  void find_unnamed_update(answer<std::string> reply) override;
  void reset_manager(done reply) override;
  void read_bios(std::vector<std::string> names,
                 answer<std::map<std::string, attribute_facts>> reply) override;
  void write_bios(std::map<std::string, std::string> values, done reply) override;
  void read_device(std::vector<std::string> names,
                   answer<std::map<std::string, attribute_facts>> reply) override;
  void write_device(std::map<std::string, std::string> values, done reply) override;
  void read_nvlink(answer<nvlink_facts> reply) override;

 private:
  absl::Status reach();  // may anything be asked at all
  absl::Status enter();  // and with a session
  template <class T>
  void give(answer<T> reply, absl::StatusOr<T> result);
  void give(done reply, absl::Status result);

  std::shared_ptr<fake_device> device_;
  poster post_;
  std::string pin_;
  credentials login_;
  std::string session_;
  std::map<std::string, int> wrong_logins_;  // by user
  bool may_log_in() const;
};

}  // namespace busbar::devices
