// What a device model may know of the site around it. Implemented by the site; never by a device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/sim/agenda.hpp"
#include "daemon/sim/coolant_side.hpp"
#include "daemon/sim/faults.hpp"
#include "daemon/sim/site_data.hpp"

namespace busbar::sim {

enum class device_kind { compute_tray, switch_tray, power_shelf, cdu, rack_controller, rack_pdu };

struct device_identity {
  std::string member;  // r01/c07, cdu01
  device_kind kind{};
  int rack = 0;         // 1-based; 0: the CDU
  int ordinal = 0;      // slot within its kind, 1-based
  std::string address;  // 127.18.1.7
  std::string mac;
  std::string serial;
  std::string uuid;
};

struct rack_coolant {
  double flow_lpm = 0;
  double dp_kpa = 0;
  double supply_c = 0;
  double return_c = 0;
  double removed_kw = 0;
};

class device;

class environment {
 public:
  virtual ~environment() = default;

  virtual const profile& timings() const = 0;
  virtual const sku_data& sku() const = 0;
  virtual const fault_book& faults() const = 0;
  virtual agenda& schedule() = 0;
  virtual std::uint64_t seed() const = 0;
  virtual std::string wall(instant when) const = 0;  // RFC 3339

  // A device's host or shelf came up, went down or changed its load.
  virtual void power_changed(device& changed, instant now) = 0;
  virtual void host_booted(const device& booted, const std::string& boot_uri, instant now) = 0;
  virtual void host_off(const device& gone, instant now) = 0;
  virtual void event(const device& source, std::string message_id, std::string message,
                     std::string origin) = 0;

  virtual coolant_side& loop() = 0;
  virtual const coolant_side& loop() const = 0;
  virtual double outlet_c(const device& tray) const = 0;
  virtual double inlet_c(const device& tray) const = 0;
  virtual double gpu_c(const device& tray, int gpu) const = 0;
  virtual rack_coolant coolant(int rack) const = 0;        // what is
  virtual rack_coolant shown_coolant(int rack) const = 0;  // what the CDU's sensors say; NaN: nothing
  virtual std::vector<std::string> racks() const = 0;      // r01, r02
  virtual double shelf_output_w(const device& shelf) const = 0;
  // What the shelf behind an outlet of a PDU takes from it; 0: no shelf.
  virtual double feed_w(const device& pdu, int outlet) const = 0;

  // NVLink of a rack: GPU numbered through the rack.
  virtual bool fabric_active(int rack) const = 0;
  virtual bool link_up(int rack, int gpu_of_rack, int link, instant now) const = 0;
  // Which GPU and link a switch port carries; false: none.
  virtual bool port_carries(int switch_ordinal, int asic, int port, int& gpu_of_rack, int& link) const = 0;
};

}  // namespace busbar::sim
