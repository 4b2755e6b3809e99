// Compute tray: GPUs, NICs, BIOS, boot-once, NVLink as the GPUs see it.
#pragma once

#include <string>
#include <vector>

#include "daemon/sim/tray.hpp"

namespace busbar::sim {

inline constexpr double throttle_release_c = 83;  // a GPU that slowed down at 88 C goes on below it

class compute_tray : public tray {
 public:
  compute_tray(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
               bool starts_old, const std::string& factory_password);

  double power_kw() const override;
  void faults_changed(instant now) override;
  double gpu_power_w(int gpu) const;
  // What a die's temperature does to it: it slows down, and at the last its host goes off by itself. True:
  // its power changed.
  bool gpu_is_at(int gpu, double celsius, instant now);
  bool throttled() const;
  double load() const { return load_; }
  void set_load(double fraction) { load_ = fraction; }

  json truth(instant now) const override;
  json save() const override;
  void load(const json& saved) override;

 protected:
  json value(const value_name& name, instant now) const override;
  bool hidden(std::string_view path, instant now) const override;
  action_reply patch(const std::string& path, const json& body, instant now, request_note& note) override;
  std::string host_starts() override;

 private:
  json gpu_value(const value_name& name, int gpu, instant now) const;
  json link_value(std::string_view name, int gpu, int link, instant now) const;
  json sku_value(std::string_view name) const;
  bool missing(int gpu, instant now) const;
  int lanes(std::string_view part, instant now) const;
  double wanted_gpu_w() const;
  http_reply patch_boot(const json& body, request_note& note);
  http_reply patch_bios(const json& body, instant now, request_note& note);
  http_reply patch_gpu_limit(const std::string& path, const json& body, request_note& note);

  json bios_;
  json bios_pending_;  // the whole future set
  std::string boot_enabled_ = "Disabled";
  std::string boot_target_ = "None";
  std::string boot_uri_;
  std::vector<double> gpu_limit_w_;
  std::vector<bool> gpu_hot_;        // it slows itself down
  std::vector<double> gpu_draws_w_;  // by a fault; 0: none
  double load_ = 0;                  // 0 idle .. 1 burning, while the host runs
};

}  // namespace busbar::sim
