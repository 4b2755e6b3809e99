#include "tests/unit/devices/scripted_service.hpp"

#include <algorithm>
#include <fstream>

namespace busbar::devices::redfish {
namespace {

using nlohmann::json;

const std::string root = "/redfish/v1";

http_outcome answer(int status, const json& body, http_headers headers = {}) {
  http_outcome outcome;
  outcome.reply.status = status;
  outcome.reply.body = body.is_null() ? "" : body.dump();
  outcome.reply.headers = std::move(headers);
  return outcome;
}

http_outcome error(int status, const std::string& id) {
  return answer(
      status,
      {{"error", {{"@Message.ExtendedInfo", {{{"MessageId", "Base.1.18." + id}, {"Message", id}}}}}}});
}

json link(const std::string& path) {
  return {{"@odata.id", root + path}};
}

json list(const std::vector<std::string>& paths, std::size_t more = 0) {
  json members = json::array();
  for (const std::string& path : paths) members.push_back(link(path));
  return {{"Members", members}, {"Members@odata.count", paths.size() + more}};
}

json scalar(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const json parsed = json::parse(text, nullptr, false);
  return parsed.is_number() ? parsed : json(text);
}

const char* word_of(journal::PowerState state) {
  return state == journal::POWER_ON ? "On" : "Off";
}

void add_detectors(json& tree, const fake_device& device) {
  std::vector<std::string> paths;
  std::vector<std::string> sensors;
  for (const detector_facts& one : device.detectors) {
    const std::string id = "Chassis_0_LeakDetector_" + one.name;
    const bool wet = one.verdict == journal::Detector::LEAK;
    const bool unknown = one.verdict == journal::Detector::UNKNOWN;
    const std::string path = "/Chassis/Chassis_0/ThermalSubsystem/LeakDetection/LeakDetectors/" + id;
    tree[path] = {
        {"Id", id},
        {"DetectorState", wet ? "Critical" : "OK"},
        {"Status",
         {{"State", unknown ? "UnavailableOffline" : "Enabled"}, {"Health", wet ? "Critical" : "OK"}}}};
    const auto reaction = device.device_attributes.find("leak_reaction.critical");
    if (reaction != device.device_attributes.end()) tree[path]["CriticalReactionType"] = reaction->second;
    const std::string sensor = "/Chassis/Chassis_0/Sensors/" + id;
    tree[sensor] = {{"Id", id},
                    {"Reading", wet ? 0.4 : 1.75},
                    {"Status", {{"State", "Enabled"}}},
                    {"Thresholds", {{"LowerCritical", {{"Reading", 1.617}}}}}};
    paths.push_back(path);
    sensors.push_back(sensor);
  }
  tree["/Chassis/Chassis_0/ThermalSubsystem"] = {
      {"LeakDetection", link("/Chassis/Chassis_0/ThermalSubsystem/LeakDetection")}};
  tree["/Chassis/Chassis_0/ThermalSubsystem/LeakDetection"] = {
      {"LeakDetectors", link("/Chassis/Chassis_0/ThermalSubsystem/LeakDetection/LeakDetectors")}};
  tree["/Chassis/Chassis_0/ThermalSubsystem/LeakDetection/LeakDetectors"] = list(paths);
  tree["/Chassis/Chassis_0/Sensors"] = list(sensors);
}

void add_systems(json& tree, const fake_device& device) {
  tree["/Systems"] = list({"/Systems/System_0", "/Systems/HGX_Baseboard_0"});
  tree["/Systems/System_0"] = {
      {"Id", "System_0"},
      {"SerialNumber", device.identity.serial.value_or("")},
      {"Model", device.identity.model.value_or("")},
      {"PowerState", word_of(device.power)},
      {"@Redfish.Settings", {{"SettingsObject", link("/Systems/System_0/Settings")}}},
      {"Bios", link("/Systems/System_0/Bios")},
      {"Processors", link("/Systems/System_0/Processors")},
      {"Actions",
       {{"#ComputerSystem.Reset",
         {{"target", root + "/Systems/System_0/Actions/ComputerSystem.Reset"},
          {"@Redfish.ActionInfo", root + "/Systems/System_0/ResetActionInfo"}}}}},
      {"Links", {{"ManagedBy", {link("/Managers/BMC_0")}}}}};
  tree["/Systems/HGX_Baseboard_0"] = {{"Id", "HGX_Baseboard_0"},
                                      {"Processors", link("/Systems/HGX_Baseboard_0/Processors")}};
  tree["/Systems/System_0/ResetActionInfo"] = {
      {"Parameters", {{{"Name", "ResetType"}, {"AllowableValues", device.offered}}}}};
  tree["/Systems/System_0/Settings"] = {{"Boot",
                                         {{"BootSourceOverrideEnabled", device.boot.enabled},
                                          {"BootSourceOverrideTarget", device.boot.target},
                                          {"HttpBootUri", device.boot.uri}}}};
  json now = json::object();
  for (const auto& [name, value] : device.bios) now[name] = scalar(value);
  json later = now;
  for (const auto& [name, value] : device.bios_pending) later[name] = scalar(value);
  tree["/Systems/System_0/Bios"] = {
      {"Attributes", now},
      {"@Redfish.Settings", {{"SettingsObject", link("/Systems/System_0/Bios/Settings")}}}};
  tree["/Systems/System_0/Bios/Settings"] = {{"Attributes", later}};
}

void add_processors(json& tree, const fake_device& device) {
  std::vector<std::string> host;
  std::vector<std::string> board;
  for (const journal::Part& part : device.parts) {
    const std::string path = "/Systems/HGX_Baseboard_0/Processors/" + part.id();
    tree[path] = {
        {"Id", part.id()},
        {"ProcessorType", part.kind() == "gpu" ? "GPU" : "CPU"},
        {"Model", part.model()},
        {"SerialNumber", part.serial()},
        {"TotalCores", part.cores()},
        {"MemorySummary", {{"TotalMemorySizeMiB", part.memory_gib() * 1024}}},
        {"Status",
         {{"State", "Enabled"}, {"Health", part.health() == journal::HEALTH_GOOD ? "OK" : "Critical"}}}};
    board.push_back(path);
    if (part.kind() == "cpu") {  // the host shows its CPUs a second time
      tree["/Systems/System_0/Processors/" + part.id()] = tree[path];
      host.push_back("/Systems/System_0/Processors/" + part.id());
    }
    const auto links = device.nvlink.links_announced.find(part.id());
    if (links == device.nvlink.links_announced.end()) continue;
    tree[path]["Ports"] = link("/Systems/HGX_Baseboard_0/Processors/" + part.id() + "/Ports");
    tree[path]["Oem"]["Nvidia"]["FabricCliqueId"] = scalar(device.nvlink.clique_id.value_or(""));
    std::vector<std::string> ports;
    for (std::uint32_t i = 0; i < links->second; ++i) {
      ports.push_back(path + "/Ports/NVLink_" + std::to_string(i));
      const bool up = i < device.nvlink.links_up.at(part.id());
      tree[ports.back()] = {{"PortProtocol", "NVLink"}, {"LinkStatus", up ? "LinkUp" : "LinkDown"}};
    }
    tree[path + "/Ports"] = list(ports);
  }
  tree["/Systems/System_0/Processors"] = list(host);
  tree["/Systems/HGX_Baseboard_0/Processors"] = list(board, device.parts_not_shown);
}

void add_services(json& tree, const fake_device& device) {
  std::vector<std::string> accounts;
  for (const auto& [name, account] : device.accounts) {
    accounts.push_back("/AccountService/Accounts/" + name);
    tree[accounts.back()] = {{"UserName", name},
                             {"RoleId", account.role},
                             {"Enabled", true},
                             {"Locked", account.locked},
                             {"@odata.etag", "\"" + std::to_string(account.password.size()) + "\""}};
  }
  tree["/AccountService"] = {{"Accounts", link("/AccountService/Accounts")}};
  tree["/AccountService/Accounts"] = list(accounts);
  std::vector<std::string> components;
  for (const auto& [name, version] : device.firmware) {
    components.push_back("/UpdateService/FirmwareInventory/" + name);
    tree[components.back()] = {{"Id", name}, {"Version", version}};
  }
  tree["/UpdateService"] = {{"FirmwareInventory", link("/UpdateService/FirmwareInventory")},
                            {"MultipartHttpPushUri", root + "/UpdateService/update-multipart"}};
  tree["/UpdateService/FirmwareInventory"] = list(components);
  std::vector<std::string> tasks;
  for (const auto& [uri, one] : device.tasks) {
    const std::string path = uri.substr(root.size());
    const char* const state = one.state == task_state::running     ? "Running"
                              : one.state == task_state::completed ? "Completed"
                                                                   : "Exception";
    const std::string target =
        device.tasks_name_components ? "/UpdateService/FirmwareInventory/" + one.component : "";
    const json targets = {{"Targets", {root + target}}};
    tree[path] = {{"TaskState", state},
                  {"TaskStatus", "OK"},
                  {"StartTime", "2026-01-01T00:00:0" + path.substr(path.size() - 1)},
                  {"Payload", {{"JsonBody", targets.dump()}}}};
    tasks.push_back(path);
  }
  tree["/TaskService"] = {{"Tasks", link("/TaskService/Tasks")}};
  tree["/TaskService/Tasks"] = list(tasks);
  const auto timeout = device.device_attributes.find("session_timeout_s");
  tree["/SessionService"] = {{"Sessions", link("/SessionService/Sessions")}};
  if (timeout != device.device_attributes.end())
    tree["/SessionService"]["SessionTimeout"] = scalar(timeout->second);
}

}  // namespace

json scripted_service::tree() {
  const fake_device& device = *device_;
  json all = json::object();
  all[""] = {{"UUID", device.uuid},
             {"Vendor", device.vendor},
             {"Product", device.product},
             {"Links", {{"Sessions", link("/SessionService/Sessions")}}}};
  for (const char* key :
       {"Systems", "Chassis", "Managers", "AccountService", "UpdateService", "SessionService"}) {
    all[""][key] = link(std::string("/") + key);
  }
  all[""]["Tasks"] = link("/TaskService");
  add_systems(all, device);
  add_processors(all, device);
  add_detectors(all, device);
  add_services(all, device);
  const int ordinal = std::atoi(device.identity.slot.value_or("c0").c_str() + 1);
  all["/Chassis"] = list({"/Chassis/Chassis_0", "/Chassis/CBC_0", "/Chassis/Gone_0"});
  all["/Chassis/Chassis_0"] = {{"Id", "Chassis_0"},
                               {"ThermalSubsystem", link("/Chassis/Chassis_0/ThermalSubsystem")},
                               {"Sensors", link("/Chassis/Chassis_0/Sensors")}};
  all["/Chassis/CBC_0"] = {{"Id", "CBC_0"},
                           {"Location", {{"PartLocation", {{"LocationOrdinalValue", ordinal}}}}}};
  all["/Managers"] = list({"/Managers/BMC_0"});
  all["/Managers/BMC_0"] = {
      {"EthernetInterfaces", link("/Managers/BMC_0/EthernetInterfaces")},
      {"Actions", {{"#Manager.Reset", {{"target", root + "/Managers/BMC_0/Actions/Manager.Reset"}}}}}};
  all["/Managers/BMC_0/EthernetInterfaces"] = list({"/Managers/BMC_0/EthernetInterfaces/eth0"});
  all["/Managers/BMC_0/EthernetInterfaces/eth0"] = {{"Id", "eth0"},
                                                    {"MACAddress", device.identity.mac.value_or("")}};
  return all;
}

http_outcome scripted_service::handle(const http_request& request) {
  http_outcome none;
  if (!device_->reachable) {
    none.error = transport_error::unreachable;
    none.detail = "refused";
    return none;
  }
  if (!request.pin.empty() && request.pin != device_->certificate) {
    none.error = transport_error::pin_mismatch;
    none.reply.certificate_sha256 = device_->certificate;
    return none;
  }
  const auto token = std::find_if(request.headers.begin(), request.headers.end(),
                                  [](const auto& header) { return header.first == "X-Auth-Token"; });
  const auto session = token == request.headers.end() ? tokens_.end() : tokens_.find(token->second);
  const bool inside = session != tokens_.end() && device_->sessions.count(session->second) != 0;
  const bool open = request.path == root || request.path == root + "/SessionService/Sessions";
  http_outcome outcome;
  if (!inside && !open) {
    outcome = error(401, "NoValidSession");
  } else if (inside && !open && device_->change_required_of == device_->sessions.at(session->second) &&
             request.path != root + "/AccountService/Accounts/" + device_->change_required_of) {
    outcome = error(403, "PasswordChangeRequired");
  } else if (request.method == http_method::get) {
    outcome = get(request.path);
  } else if (request.method == http_method::post) {
    outcome = post(request);
  } else if (request.method == http_method::patch) {
    outcome = patch(request);
  } else if (const std::string accounts = root + "/AccountService/Accounts/";
             request.path.starts_with(accounts)) {
    const std::string user = request.path.substr(accounts.size());
    outcome = device_->accounts.erase(user) != 0 ? answer(204, nullptr) : error(404, "ResourceNotFound");
    if (outcome.reply.status == 204) device_->acts.push_back("delete " + user);
  } else {
    outcome =
        device_->sessions.erase(request.path) != 0 ? answer(204, nullptr) : error(404, "ResourceNotFound");
  }
  outcome.reply.certificate_sha256 = device_->certificate;
  return outcome;
}

http_outcome scripted_service::get(const std::string& path) {
  const json all = tree();
  const auto found = all.find(path.substr(root.size()));
  return found == all.end() ? error(404, "ResourceNotFound") : answer(200, *found);
}

http_outcome scripted_service::open_session(const json& body) {
  const std::string user = body.value("UserName", "");
  const auto account = device_->accounts.find(user);
  const bool locked = account != device_->accounts.end() && account->second.locked;
  if (account == device_->accounts.end() || locked ||
      account->second.password != body.value("Password", "")) {
    device_->acts.push_back("refused " + user);
    return error(401, locked ? "AccountLocked" : "ResourceAtUriUnauthorized");
  }
  if (device_->sessions.size() >= device_->session_limit) return error(503, "SessionLimitExceeded");
  const std::string uri = root + "/SessionService/Sessions/" + std::to_string(device_->next_session++);
  const std::string token = "token-of-" + uri;
  device_->sessions[uri] = user;
  tokens_[token] = uri;
  device_->acts.push_back("login " + user);
  json made = {{"@odata.id", uri}};
  if (device_->change_required_of == user) {
    made["@Message.ExtendedInfo"] = {{{"MessageId", "Base.1.18.PasswordChangeRequired"},
                                      {"MessageArgs", {root + "/AccountService/Accounts/" + user}}}};
  }
  return answer(201, made, {{"x-auth-token", token}, {"location", uri}});
}

http_outcome scripted_service::reset(const json& body) {
  const std::string word = body.value("ResetType", "");
  if (std::find(device_->offered.begin(), device_->offered.end(), word) == device_->offered.end()) {
    return error(400, "ActionParameterNotSupported");
  }
  const bool off = word == "ForceOff" || word == "GracefulShutdown";
  const bool again = word == "ForceRestart" || word == "PowerCycle";
  const auto wanted = off ? journal::POWER_OFF : journal::POWER_ON;
  if (device_->power == wanted && !again) return error(400, "PropertyValueConflict");
  device_->acts.push_back("reset " + word);
  device_->power = wanted;
  if (!off) device_->host_restarted();
  return answer(204, nullptr);
}

http_outcome scripted_service::push(const http_request& request) {
  const json parameters = json::parse(request.parts.at(0).data);
  const std::string target = parameters.at("Targets").at(0).get<std::string>();
  std::ifstream image(request.parts.at(1).file_path);
  std::string named;
  std::string version;
  if (!(image >> named >> version)) return error(400, "GeneralError");
  const std::string component = target.substr(target.rfind('/') + 1);
  const std::string uri = root + "/TaskService/Tasks/" + std::to_string(device_->tasks.size() + 1);
  device_->tasks[uri] = {component, version, task_state::running};
  device_->acts.push_back("push " + component);
  return answer(202, {{"@odata.id", uri}}, {{"location", uri}});
}

http_outcome scripted_service::post(const http_request& request) {
  if (!request.parts.empty()) return push(request);
  const json body = json::parse(request.body);
  if (request.path == root + "/SessionService/Sessions") return open_session(body);
  if (request.path == root + "/Systems/System_0/Actions/ComputerSystem.Reset") return reset(body);
  if (request.path == root + "/Managers/BMC_0/Actions/Manager.Reset") {
    device_->acts.push_back("reset_manager");
    device_->sessions.clear();
    return answer(204, nullptr);
  }
  if (request.path != root + "/AccountService/Accounts") return error(404, "ResourceNotFound");
  const std::string user = body.value("UserName", "");
  if (device_->accounts.count(user) != 0) return error(400, "ResourceAlreadyExists");
  device_->accounts[user] = {body.value("Password", ""), body.value("RoleId", "")};
  device_->acts.push_back("create " + user);
  return answer(201, {{"UserName", user}});
}

http_outcome scripted_service::patch(const http_request& request) {
  const json body = json::parse(request.body);
  const std::string path = request.path.substr(root.size());
  if (path.starts_with("/AccountService/Accounts/")) {
    const std::string user = path.substr(path.rfind('/') + 1);
    const auto match = std::find_if(request.headers.begin(), request.headers.end(),
                                    [](const auto& header) { return header.first == "If-Match"; });
    if (match == request.headers.end()) return error(428, "PreconditionRequired");
    device_->accounts.at(user).password = body.value("Password", "");
    if (device_->change_required_of == user) device_->change_required_of.clear();
    device_->acts.push_back("password " + user);
    return answer(200, {{"UserName", user}});
  }
  if (path == "/Systems/System_0/Settings") {
    const json& boot = body.at("Boot");
    device_->boot = {boot.value("BootSourceOverrideEnabled", ""), boot.value("BootSourceOverrideTarget", ""),
                     boot.value("HttpBootUri", "")};
    return answer(204, nullptr);
  }
  if (path == "/Systems/System_0/Bios/Settings") {
    for (const auto& [name, value] : body.at("Attributes").items()) {
      device_->bios_pending[name] = value.is_string() ? value.get<std::string>() : value.dump();
    }
    return answer(204, nullptr);
  }
  if (path == "/SessionService") {
    device_->device_attributes["session_timeout_s"] = body.at("SessionTimeout").dump();
    return answer(204, nullptr);
  }
  if (path.find("/LeakDetectors/") != std::string::npos) {
    device_->device_attributes["leak_reaction.critical"] = body.at("CriticalReactionType").get<std::string>();
    return answer(204, nullptr);
  }
  return error(405, "OperationNotAllowed");
}

}  // namespace busbar::devices::redfish
