// Rack PDUs over SNMP: v2c and v3 (SHA, AES), GET, GETNEXT, GETBULK and SET. net-snmp reads and writes the
// messages; what they mean is the model's. One thread for all agents of the process.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "daemon/sim/model_loop.hpp"
#include "daemon/sim/rack_pdu.hpp"

namespace busbar::sim {

inline constexpr const char* snmp_user = "pdu";

// Called on the model loop's thread.
struct snmp_backend {
  std::function<std::map<oid_path, mib_value>(const std::string& address)> objects;
  std::function<absl::Status(const std::string& address, const oid_path& object, std::int64_t value,
                             const std::string& peer, const std::string& user)>
      set;
};

class snmp_face {
 public:
  // secret: the community, and both passwords of snmp_user.
  snmp_face(model_loop& loop, snmp_backend backend, std::string secret);
  ~snmp_face();
  snmp_face(const snmp_face&) = delete;
  snmp_face& operator=(const snmp_face&) = delete;

  absl::Status listen(const std::string& address, std::uint16_t port);  // before start
  void start();
  void stop();  // joins; before the model loop stops

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace busbar::sim
