// A fake_device shown as a Redfish service, in process: the other side of the contract test.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "actors/devices/bmc_fake.hpp"
#include "actors/devices/redfish/http_transport.hpp"

namespace busbar::devices::redfish {

class scripted_service {
 public:
  explicit scripted_service(std::shared_ptr<fake_device> device) : device_(std::move(device)) {}
  http_outcome handle(const http_request& request);

 private:
  nlohmann::json tree();
  http_outcome get(const std::string& path);
  http_outcome post(const http_request& request);
  http_outcome patch(const http_request& request);
  http_outcome open_session(const nlohmann::json& body);
  http_outcome reset(const nlohmann::json& body);
  http_outcome push(const http_request& request);

  std::shared_ptr<fake_device> device_;
  std::map<std::string, std::string> tokens_;  // token -> session URI
};

}  // namespace busbar::devices::redfish
