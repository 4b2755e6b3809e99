// A tray with a host behind its BMC: power states with real delays, leak detectors. Compute and switch trays
// derive from it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/sim/device.hpp"

namespace busbar::sim {

enum class host_phase { off, starting, booting, running, stopping };

class tray : public device {
 public:
  tray(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
       bool starts_old, const std::string& factory_password, std::vector<std::string> detectors,
       std::string system_path, std::string detectors_path);

  bool host_running() const override { return phase_ == host_phase::running; }
  bool host_powered() const override { return phase_ != host_phase::off; }
  host_phase phase() const { return phase_; }
  void faults_changed(instant now) override;
  json truth(instant now) const override;
  json save() const override;
  void load(const json& saved) override;

  // Of the boot that runs; empty for a local boot.
  const std::string& boot_uri() const { return boot_uri_; }
  bool wet(std::string_view detector, instant now) const;
  std::vector<std::string> detectors() const override { return detectors_; }

 protected:
  json value(const value_name& name, instant now) const override;
  action_reply post(const std::string& path, const json& body, instant now, request_note& note) override;
  action_reply patch(const std::string& path, const json& body, instant now, request_note& note) override;
  void standby_lost(instant now) override;
  // The hardware pulls its power at once, whatever its BMC does.
  void trip(instant now, const std::string& why);
  // Just before the host starts: pending settings become active. The boot's URI, empty for a local boot.
  virtual std::string host_starts() { return {}; }

 private:
  http_reply reset(const std::string& type, instant now);
  std::vector<std::string> reset_types(instant now) const;
  void start(instant now, instant delay);
  void stop(instant now, instant delay, bool then_start);
  void react_to_leaks(instant now);
  std::string detector_word(std::string_view detector, instant now) const;

  std::vector<std::string> detectors_;
  std::string system_path_;
  std::string detectors_path_;  // of the collection
  std::map<std::string, std::string, std::less<>> reactions_;
  std::set<std::string, std::less<>> announced_wet_;  // an event went out for it
  host_phase phase_ = host_phase::off;
  instant phase_since_{0};
  std::uint64_t generation_ = 0;  // a planned change of an earlier generation is void
  std::uint64_t boots_ = 0;
  std::string boot_uri_;  // of the running boot
};

}  // namespace busbar::sim
