// POST, PATCH and DELETE of what every BMC has: sessions, accounts, updates, its own restart.
#include <cmath>
#include <utility>

#include "daemon/sim/device.hpp"
#include "daemon/sim/redfish_reply.hpp"

namespace busbar::sim {

namespace {

constexpr std::string_view sessions_path = "/redfish/v1/SessionService/Sessions";
constexpr std::string_view accounts_path = "/redfish/v1/AccountService/Accounts";
constexpr std::size_t shortest_password = 8;

http_reply no_privilege() {
  return error_reply(403, "InsufficientPrivilege",
                     "There are insufficient privileges for the account to do this.");
}

std::string text_at(const json& body, const char* key) {
  const auto found = body.find(key);
  return found != body.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

http_reply device::do_post(const http_request& request, const std::string& path, const access& who,
                           instant now, request_note& note) {
  if (path.starts_with(sessions_path)) {
    return login(request, now, note);
  }
  if (!may_write(who.role)) {
    return no_privilege();
  }
  if (path == "/redfish/v1/UpdateService/update-multipart") {
    return may_administer(who.role) ? push_update(request, now, note) : no_privilege();
  }
  const json body = request.body.empty() ? json::object() : json::parse(request.body, nullptr, false);
  if (!body.is_object()) {
    return malformed();
  }
  if (path == accounts_path) {
    return may_administer(who.role) ? create_account(body, note) : no_privilege();
  }
  if (path == "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate") {
    return may_administer(who.role) ? simple_update(body, now, note) : no_privilege();
  }
  if (path == "/redfish/v1/Managers/BMC_0/Actions/Manager.Reset") {
    return may_administer(who.role) ? reset_manager(body, now, note) : no_privilege();
  }
  if (auto reply = post(path, body, now, note)) {
    return *reply;
  }
  return tree_->find(path) != nullptr ? not_allowed() : not_found(path);
}

http_reply device::login(const http_request& request, instant now, request_note& note) {
  const json body = json::parse(request.body, nullptr, false);
  if (!body.is_object()) {
    return malformed();
  }
  const std::string user = text_at(body, "UserName");
  note.user = user;
  note.act = "login";
  const bool right = access_.check_password(user, text_at(body, "Password"), now);
  if (const account* const known = access_.find(user); known != nullptr && known->locked_until > now) {
    return error_reply(401, "ResourceAtUriUnauthorized",
                       "While accessing the resource, the service received an "
                       "authorization error: The account is locked.");
  }
  if (!right) {
    return error_reply(401, "ResourceAtUriUnauthorized",
                       "While accessing the resource, the service received an "
                       "authorization error: Invalid username or password.");
  }
  const auto id = access_.open_session(user, request.peer, now);
  if (!id) {
    return error_reply(503, "SessionLimitExceeded",
                       "The session establishment failed due to the number of "
                       "simultaneous sessions exceeding the limit of the implementation.");
  }
  json shown = *session_body(*id);
  if (access_.accounts().at(user).must_change) {
    const std::string uri = std::string(accounts_path) + "/" + user;
    shown["@Message.ExtendedInfo"] =
        extended_info("PasswordChangeRequired",
                      "The password provided for this account must be changed before access "
                      "is granted. PATCH the Password property at " +
                          uri + ".",
                      json::array({uri}));
  }
  http_reply reply = json_reply(201, shown);
  reply.headers["Location"] = std::string(sessions_path) + "/" + *id;
  reply.headers["X-Auth-Token"] = access_.sessions().at(*id).token;
  return reply;
}

http_reply device::create_account(const json& body, request_note& note) {
  const std::string name = text_at(body, "UserName");
  const std::string password = text_at(body, "Password");
  const std::string role = text_at(body, "RoleId");
  note.act = "account_create";
  note.argument = name;
  if (name.empty() || password.size() < shortest_password) {
    return error_reply(400, "PropertyValueFormatError",
                       "UserName or Password is not of the format that is accepted.");
  }
  if (!may_write(role) && role != "ReadOnly") {
    return error_reply(400, "PropertyValueNotInList",
                       "The value for the property RoleId is not in the list.");
  }
  if (access_.find(name) != nullptr) {
    return error_reply(400, "ResourceAlreadyExists",
                       "The requested resource of type ManagerAccount with the property "
                       "UserName with the value '" +
                           name + "' already exists.");
  }
  access_.accounts()[name] = {password, role, false, 0, instant{0}};
  http_reply reply = json_reply(201, *account_body(name, instant{0}));
  reply.headers["Location"] = std::string(accounts_path) + "/" + name;
  return reply;
}

http_reply device::change_account(const std::string& name, const json& body, const access& who,
                                  request_note& note) {
  account* const known = access_.find(name);
  if (known == nullptr) {
    return not_found(std::string(accounts_path) + "/" + name);
  }
  const bool only_password = body.size() == 1 && body.contains("Password");
  if (!may_administer(who.role) && !(who.user == name && only_password)) {
    return no_privilege();
  }
  if (body.contains("Password")) {
    note.act = "password_change";
    note.argument = name;
    const std::string password = text_at(body, "Password");
    if (password.size() < shortest_password) {
      return error_reply(400, "PropertyValueFormatError",
                         "The Password is not of the format that is accepted.");
    }
    known->password = password;
    known->must_change = false;
    std::vector<std::string> others;
    for (const auto& [id, each] : access_.sessions()) {
      if (each.user == name && id != who.session_id) {
        others.push_back(id);
      }
    }
    for (const std::string& id : others) {
      access_.close_session(id);
    }
  }
  if (const std::string role = text_at(body, "RoleId"); !role.empty()) {
    known->role = role;
  }
  if (const auto locked = body.find("Locked"); locked != body.end() && *locked == false) {
    known->locked_until = instant{0};
  }
  return empty_reply(204);
}

http_reply device::do_patch(const std::string& path, const json& body, const access& who, instant now,
                            request_note& note) {
  if (path.starts_with(std::string(accounts_path) + "/")) {
    return change_account(path.substr(accounts_path.size() + 1), body, who, note);
  }
  if (!may_write(who.role)) {
    return no_privilege();
  }
  if (path == "/redfish/v1/SessionService") {
    const auto timeout = body.find("SessionTimeout");
    if (!may_administer(who.role)) {
      return no_privilege();
    }
    if (timeout == body.end() || !timeout->is_number_integer() || timeout->get<int>() < 30 ||
        timeout->get<int>() > 86400) {
      return error_reply(400, "PropertyValueError", "SessionTimeout must be an integer from 30 to 86400.");
    }
    note.act = "session_timeout";
    access_.set_session_timeout(std::chrono::seconds(timeout->get<int>()));
    return empty_reply(204);
  }
  if (auto reply = patch(path, body, now, note)) {
    return *reply;
  }
  return tree_->find(path) != nullptr ? not_allowed() : not_found(path);
}

http_reply device::do_delete(const std::string& path, const access& who, request_note& note) {
  if (path.starts_with(std::string(sessions_path) + "/")) {
    const std::string id = path.substr(sessions_path.size() + 1);
    const auto found = access_.sessions().find(id);
    if (found == access_.sessions().end()) {
      return not_found(path);
    }
    if (found->second.user != who.user && !may_administer(who.role)) {
      return no_privilege();
    }
    note.act = "logout";
    access_.close_session(id);
    return empty_reply(204);
  }
  if (path.starts_with(std::string(accounts_path) + "/")) {
    const std::string name = path.substr(accounts_path.size() + 1);
    if (!may_administer(who.role)) {
      return no_privilege();
    }
    note.act = "account_delete";
    note.argument = name;
    if (name == factory_user) {
      return error_reply(403, "ResourceCannotBeDeleted", "The factory account cannot be deleted.");
    }
    return access_.accounts().erase(name) > 0 ? empty_reply(204) : not_found(path);
  }
  return tree_->find(path) != nullptr ? not_allowed() : not_found(path);
}

http_reply device::push_update(const http_request& request, instant now, request_note& note) {
  note.act = "update_push";
  std::string why;
  const auto update = parse_update(request, why);
  if (!update) {
    return error_reply(400, "PropertyValueFormatError", why);
  }
  note.argument = update->component;
  return begin_update(*update, now);
}

http_reply device::begin_update(const update_request& update, instant now) {
  if (!firmware_.knows(update.component)) {
    return error_reply(400, "PropertyValueNotInList",
                       "There is no firmware component " + update.component + ".");
  }
  if (firmware_.busy()) {
    http_reply reply = error_reply(503, "ServiceTemporarilyUnavailable", "An update is in progress.");
    reply.headers["Retry-After"] = "5";
    return reply;
  }
  update_task faults;
  faults.refused =
      find_fault(fault_kind::firmware_refused, update.component, update.component, now) != nullptr;
  faults.unchanged =
      find_fault(fault_kind::firmware_unchanged, update.component, update.component, now) != nullptr;
  faults.vanishes = faulty(fault_kind::task_vanishes, now);
  const std::string id = firmware_.begin(update, now, around_.timings().flash, faults);
  around_.schedule().at(now + around_.timings().flash, [this, id](instant) { firmware_.finish(id); });
  http_reply reply = json_reply(202, firmware_.task_body(id, *firmware_.task(id), now, around_.wall(now)));
  reply.headers["Location"] = "/redfish/v1/TaskService/Tasks/" + id;
  return reply;
}

// The image's URI ends in <component>_<version>.fwpkg; nothing is fetched.
http_reply device::simple_update(const json& body, instant now, request_note& note) {
  note.act = "update_push";
  std::string name = text_at(body, "ImageURI");
  name = name.substr(name.rfind('/') + 1);
  const std::size_t end = name.rfind(".fwpkg");
  const std::size_t bar = name.rfind('_');
  if (end == std::string::npos || bar == std::string::npos || bar > end) {
    return error_reply(400, "ActionParameterValueFormatError",
                       "ImageURI does not name an image of this device.");
  }
  const update_request update{name.substr(0, bar), name.substr(0, bar), name.substr(bar + 1, end - bar - 1)};
  note.argument = update.component;
  return begin_update(update, now);
}

http_reply device::reset_manager(const json& body, instant now, request_note& note) {
  const std::string type = text_at(body, "ResetType");
  note.act = "manager_reset";
  note.argument = type;
  if (type != "GracefulRestart" && type != "ForceRestart") {
    return error_reply(400, "ActionParameterNotSupported", "The ResetType " + type + " is not supported.");
  }
  restart_bmc(now);
  return empty_reply(204);
}

void device::restart_bmc(instant now) {
  bmc_alive_ = false;
  access_.close_all();
  firmware_.forget_tasks();
  firmware_.activate("bmc_reset");
  const std::uint64_t generation = ++bmc_generation_;
  const double jitter =
      1.0 + 0.1 * physics::uniform(physics::hash_of(identity_.member, around_.seed() + generation));
  const auto up = std::chrono::duration_cast<instant>(std::chrono::duration<double, std::nano>(
      static_cast<double>(around_.timings().bmc_up.count()) * jitter));
  around_.schedule().at(now + up, [this, generation](instant when) {
    if (generation == bmc_generation_ && standby_power_) {
      bmc_alive_ = true;
      bmc_started_ = when;
      in_force_.erase(fault_kind::session_cap);
      faults_changed(when);
      bmc_started(when);
    }
  });
}

void device::standby_power(bool present, instant now) {
  if (present == standby_power_) {
    return;
  }
  standby_power_ = present;
  if (present) {
    restart_bmc(now);
    return;
  }
  ++bmc_generation_;
  bmc_alive_ = false;
  access_.close_all();
  firmware_.forget_tasks();
  standby_lost(now);
}

void device::faults_changed(instant now) {
  account& factory = access_.accounts()[std::string(factory_user)];
  const bool untouched = factory.password == factory_password_;
  const auto edge = [this, now](fault_kind kind) {
    const bool is = faulty(kind, now);
    const bool was = in_force_.contains(kind);
    if (is) {
      in_force_.insert(kind);
    } else {
      in_force_.erase(kind);
    }
    return is == was ? 0 : is ? 1 : -1;
  };
  const std::string other = "not-" + factory_password_;
  if (const int turn = edge(fault_kind::factory_refused); turn > 0 && untouched) {
    factory.password = other;
  } else if (turn < 0 && factory.password == other) {
    factory.password = factory_password_;
  }
  if (const int turn = edge(fault_kind::change_required); turn != 0 && untouched) {
    factory.must_change = turn > 0;
  }
  if (const int turn = edge(fault_kind::lockout); turn > 0) {
    const fault* const lock = find_fault(fault_kind::lockout, now);
    factory.locked_until = lock->until.value_or(instant::max());
  } else if (turn < 0) {
    factory.locked_until = instant{0};
  }
  if (edge(fault_kind::foreign_owner) > 0) {
    access_.accounts()["busbar-deadbeef"] = {"foreign-password", "Administrator", false, 0, instant{0}};
  }
  if (const int turn = edge(fault_kind::session_cap); turn > 0) {
    while (access_.open_session("another", "192.0.2.9:40000", now)) {
    }
  } else if (turn < 0) {
    access_.close_all();
  }
}

}  // namespace busbar::sim
