// Makes the driver of a rack PDU by what the manifest says of it.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "actors/devices/bmc.hpp"
#include "actors/devices/outlet.hpp"

namespace busbar::devices {

class outlet_factory {
 public:
  virtual ~outlet_factory() = default;
  // login: as the manifest's file gives it; over SNMP v2c the password is the community.
  virtual absl::StatusOr<std::shared_ptr<outlet_bank>> make_outlets(const journal::PduSpec& spec,
                                                                    credentials login) = 0;
};

}  // namespace busbar::devices
