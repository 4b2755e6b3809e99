// Records for the interlock's tests.
#pragma once

#include <string>
#include <vector>

#include "busbar/interlock/interlock.pb.h"

namespace busbar::interlock::test {

inline const std::vector<std::string> four_detectors{"0_ColdPlate", "0_Manifold", "1_ColdPlate",
                                                     "1_Manifold"};

inline ArmedDevice make_device(const std::string& name,
                               const std::vector<std::string>& detectors = four_detectors) {
  ArmedDevice device;
  device.set_name(name);
  device.set_kind("compute_tray");
  device.set_address("127.18.1.1:8443");
  device.set_pin_sha256(std::string(64, 'a'));
  device.set_account("busbar-trip");
  device.set_password("secret");
  for (const std::string& detector : detectors) device.add_detectors(detector);
  return device;
}

inline ArmingRecord make_record(std::uint64_t generation,
                                const std::vector<std::string>& devices = {"r01/c01", "r01/c02", "r01/c03"}) {
  ArmingRecord record;
  record.set_rack("r01");
  record.set_generation(generation);
  for (const std::string& name : devices) *record.add_devices() = make_device(name);
  for (const std::string& name : devices) record.add_order(name);
  return record;
}

}  // namespace busbar::interlock::test
