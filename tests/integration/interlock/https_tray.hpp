// A tray behind real TLS on a loopback port of its own, with a self-signed P-256 certificate. One thread a
// connection; a request is served under one lock, as a BMC serves one at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "busbar/interlock/interlock.pb.h"
#include "tests/unit/interlock/tray_bodies.hpp"

namespace busbar::interlock::test {

class https_tray {
 public:
  https_tray();
  ~https_tray();
  https_tray(const https_tray&) = delete;
  https_tray& operator=(const https_tray&) = delete;

  // As an arming record names it.
  ArmedDevice device(const std::string& name) const;

  void make_wet(const std::string& detector);
  void make_dry(const std::string& detector);
  // Takes connections and requests, answers none.
  void stall(bool on);
  // Requests of this path are taken and not answered, those of others are; "" lets all go.
  void hold(const std::string& path);
  // How many it has accepted so far.
  std::size_t connections() const;
  // ForceOff is acknowledged and has no effect.
  void ignore_off(bool on);
  std::vector<http_request> asked() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace busbar::interlock::test
