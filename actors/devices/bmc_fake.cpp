#include "actors/devices/bmc_fake.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "actors/core/errors.hpp"

namespace busbar::devices {

using core::fault;
using core::make_fault;

void fake_device::host_restarted() {
  for (const auto& [name, value] : bios_pending) bios[name] = value;
  bios_pending.clear();
}

void fake_device::end_task(const std::string& uri, bool good) {
  fake_task& task = tasks.at(uri);
  task.state = good ? task_state::completed : task_state::failed;
  if (good) firmware[task.component] = task.version;
}

std::size_t fake_device::count_acts(std::string_view act) const {
  return static_cast<std::size_t>(std::count(acts.begin(), acts.end(), act));
}

fake_bmc::fake_bmc(std::shared_ptr<fake_device> device, poster post)
    : device_(std::move(device)), post_(std::move(post)) {
  if (!post_) post_ = [](const std::function<void()>& work) { work(); };
}

template <class T>
void fake_bmc::give(answer<T> reply, absl::StatusOr<T> result) {
  post_([reply = std::move(reply), result = std::move(result)] { reply(result); });
}

void fake_bmc::give(done reply, absl::Status result) {
  post_([reply = std::move(reply), result = std::move(result)] { reply(result); });
}

absl::Status fake_bmc::reach() {
  if (!device_->reachable) return make_fault(fault::BMC_UNREACHABLE, "the fake device is unreachable");
  if (pin_.empty()) pin_ = device_->certificate;
  if (pin_ != device_->certificate) {
    return make_fault(fault::CERTIFICATE_CHANGED, "pinned " + pin_ + ", seen " + device_->certificate, pin_,
                      device_->certificate);
  }
  return absl::OkStatus();
}

absl::Status fake_bmc::enter() {
  if (absl::Status status = reach(); !status.ok()) return status;
  if (device_->sessions.count(session_) == 0) {
    const auto account = device_->accounts.find(login_.user);
    const bool valid = account != device_->accounts.end() && account->second.password == login_.password &&
                       !account->second.locked;
    if (login_.user.empty()) return make_fault(fault::BMC_FORBIDDEN, "no session");
    if (!valid) {
      if (!may_log_in()) return make_fault(fault::CREDENTIAL_LOCKED_OUT, "three wrong logins");
      ++wrong_logins_[login_.user];
      device_->acts.push_back("refused " + login_.user);
      if (account != device_->accounts.end() && account->second.locked)
        return make_fault(fault::CREDENTIAL_LOCKED_OUT, login_.user + " is locked by the BMC");
      return make_fault(fault::CREDENTIAL_FACTORY_REFUSED, "the login of " + login_.user + " was refused");
    }
    session_ = "/redfish/v1/SessionService/Sessions/" + std::to_string(device_->next_session++);
    device_->sessions[session_] = login_.user;
    device_->acts.push_back("login " + login_.user);
  }
  if (device_->change_required_of == login_.user) {
    return make_fault(fault::CREDENTIAL_CHANGE_REQUIRED, "change the password of " + login_.user);
  }
  return absl::OkStatus();
}

void fake_bmc::probe(answer<probe_facts> reply) {
  if (absl::Status status = reach(); !status.ok()) return give<probe_facts>(reply, status);
  give<probe_facts>(reply,
                    probe_facts{device_->certificate, device_->uuid, device_->vendor, device_->product});
}

void fake_bmc::pin(std::string certificate_sha256) {
  pin_ = std::move(certificate_sha256);
}

void fake_bmc::login(credentials login, answer<session_facts> reply) {
  if (!may_log_in()) {
    return give<session_facts>(
        reply, make_fault(fault::CREDENTIAL_LOCKED_OUT, "three wrong logins; no more are tried"));
  }
  if (absl::Status status = reach(); !status.ok()) return give<session_facts>(reply, status);
  device_->sessions.erase(std::exchange(session_, ""));
  if (device_->sessions.size() >= device_->session_limit) {
    return give<session_facts>(reply, make_fault(fault::SESSION_LIMIT, "no free session"));
  }
  const credentials before = std::exchange(login_, login);
  const absl::Status status = enter();
  if (status.ok()) wrong_logins_.erase(login.user);
  const bool change = core::fault_of(status) == fault::CREDENTIAL_CHANGE_REQUIRED;
  if (!status.ok() && !change) {
    login_ = before;
    return give<session_facts>(reply, status);
  }
  give<session_facts>(reply, session_facts{session_, change});
}

void fake_bmc::delete_session(std::string uri, done reply) {
  const absl::Status status = reach();
  if (status.ok()) device_->sessions.erase(uri);
  give(reply, status);
}

void fake_bmc::forget_wrong_logins() {
  wrong_logins_.clear();
}

void fake_bmc::count_wrong_logins(std::map<std::string, int> so_far) {
  wrong_logins_ = std::move(so_far);
}

bool fake_bmc::may_log_in() const {
  int all = 0;
  for (const auto& [user, count] : wrong_logins_) all += count;
  return all < 3;
}

void fake_bmc::identify(answer<identity_facts> reply) {
  if (absl::Status status = enter(); !status.ok()) return give<identity_facts>(reply, status);
  give<identity_facts>(reply, device_->identity);
}

void fake_bmc::list_accounts(answer<std::vector<account_facts>> reply) {
  if (absl::Status status = enter(); !status.ok()) return give<std::vector<account_facts>>(reply, status);
  std::vector<account_facts> all;
  for (const auto& [name, account] : device_->accounts) {
    all.push_back({"/redfish/v1/AccountService/Accounts/" + name, name, account.role, true, false});
  }
  give<std::vector<account_facts>>(reply, std::move(all));
}

void fake_bmc::create_account(credentials account, std::string role, done reply) {
  if (absl::Status status = enter(); !status.ok()) return give(reply, status);
  if (device_->accounts.count(account.user) == 0) {
    device_->accounts[account.user] = {account.password, role};
    device_->acts.push_back("create " + account.user);
  }
  give(reply, absl::OkStatus());
}

void fake_bmc::set_password(credentials account, done reply) {
  const absl::Status status = enter();
  const bool change =
      core::fault_of(status) == fault::CREDENTIAL_CHANGE_REQUIRED && account.user == login_.user;
  if (!status.ok() && !change) return give(reply, status);
  const auto found = device_->accounts.find(account.user);
  if (found == device_->accounts.end())
    return give(reply, make_fault(fault::BMC_BAD_DATA, "no account " + account.user));
  found->second.password = account.password;
  if (device_->change_required_of == account.user) device_->change_required_of.clear();
  if (login_.user == account.user) login_ = account;
  device_->acts.push_back("password " + account.user);
  give(reply, absl::OkStatus());
}

void fake_bmc::delete_account(std::string user, done reply) {
  if (absl::Status status = enter(); !status.ok()) return give(reply, status);
  if (device_->accounts.erase(user) != 0) {
    device_->acts.push_back("delete " + user);
    std::erase_if(device_->sessions, [&user](const auto& session) { return session.second == user; });
  }
  give(reply, absl::OkStatus());
}

void fake_bmc::read_power(answer<power_facts> reply) {
  if (absl::Status status = enter(); !status.ok()) return give<power_facts>(reply, status);
  give<power_facts>(reply, power_facts{device_->power, device_->offered, ""});
}

void fake_bmc::reset(reset_type type, done reply) {
  if (absl::Status status = enter(); !status.ok()) return give(reply, status);
  const std::string word(redfish_name(type));
  if (std::find(device_->offered.begin(), device_->offered.end(), word) == device_->offered.end()) {
    return give(reply, make_fault(fault::POWER_RESET_NOT_OFFERED, word + " is not offered"));
  }
  const bool off = type == reset_type::force_off || type == reset_type::graceful_shutdown;
  const journal::PowerState wanted = off ? journal::POWER_OFF : journal::POWER_ON;
  if (device_->power != wanted || type == reset_type::force_restart || type == reset_type::power_cycle) {
    device_->acts.push_back("reset " + word);
    device_->power = wanted;
    if (!off) device_->host_restarted();
  }
  give(reply, absl::OkStatus());
}

void fake_bmc::set_boot_once(boot_facts wanted, done reply) {
  if (absl::Status status = enter(); !status.ok()) return give(reply, status);
  device_->boot = wanted;
  give(reply, absl::OkStatus());
}

void fake_bmc::read_boot_once(answer<boot_facts> reply) {
  if (absl::Status status = enter(); !status.ok()) return give<boot_facts>(reply, status);
  give<boot_facts>(reply, device_->boot);
}

void fake_bmc::read_detectors(answer<std::vector<detector_facts>> reply) {
  if (absl::Status status = enter(); !status.ok()) return give<std::vector<detector_facts>>(reply, status);
  give<std::vector<detector_facts>>(reply, device_->detectors);
}

void fake_bmc::read_inventory(answer<inventory_facts> reply) {
  if (absl::Status status = enter(); !status.ok()) return give<inventory_facts>(reply, status);
  const bool complete = device_->parts_not_shown == 0;
  give<inventory_facts>(reply,
                        inventory_facts{device_->parts, complete, complete ? "" : "parts are not shown"});
}

void fake_bmc::read_firmware(answer<std::vector<component_facts>> reply) {
  if (absl::Status status = enter(); !status.ok()) return give<std::vector<component_facts>>(reply, status);
  std::vector<component_facts> all;
  for (const auto& [component, version] : device_->firmware) all.push_back({component, version});
  give<std::vector<component_facts>>(reply, std::move(all));
}

void fake_bmc::push_firmware(std::string component, std::string image_path, answer<std::string> reply) {
  if (absl::Status status = enter(); !status.ok()) return give<std::string>(reply, status);
  if (device_->firmware.count(component) == 0) {
    return give<std::string>(reply, make_fault(fault::FIRMWARE_REFUSED, "no component " + component));
  }
  // An image is one line "component version" and noise.
  std::ifstream image(image_path);
  std::string named;
  std::string version;
  if (!(image >> named >> version)) {
    return give<std::string>(
        reply, make_fault(fault::FIRMWARE_REFUSED, "the image " + image_path + " cannot be read"));
  }
  const std::string uri = "/redfish/v1/TaskService/Tasks/" + std::to_string(device_->tasks.size() + 1);
  device_->tasks[uri] = {component, version, task_state::running};
  device_->acts.push_back("push " + component);
  give<std::string>(reply, uri);
}

void fake_bmc::read_task(std::string uri, answer<task_facts> reply) {
  if (absl::Status status = enter(); !status.ok()) return give<task_facts>(reply, status);
  const auto found = device_->tasks.find(uri);
  const task_state state = found == device_->tasks.end() ? task_state::gone : found->second.state;
  give<task_facts>(reply, task_facts{state, std::nullopt, ""});
}

void fake_bmc::find_update(std::string component, answer<std::string> reply) {
  if (absl::Status status = enter(); !status.ok()) return give<std::string>(reply, status);
  std::string newest;
  for (const auto& [uri, task] : device_->tasks) {
    if (task.component == component && device_->tasks_name_components) newest = uri;
  }
  give<std::string>(reply, newest);
}

void fake_bmc::find_unnamed_update(answer<std::string> reply) {
  if (absl::Status status = enter(); !status.ok()) return give<std::string>(reply, status);
  const bool none = device_->tasks.empty() || device_->tasks_name_components;
  give<std::string>(reply, none ? std::string() : device_->tasks.rbegin()->first);
}

void fake_bmc::reset_manager(done reply) {
  if (absl::Status status = enter(); !status.ok()) return give(reply, status);
  device_->acts.push_back("reset_manager");
  device_->sessions.clear();
  give(reply, absl::OkStatus());
}

void fake_bmc::read_bios(std::vector<std::string> names,
                         answer<std::map<std::string, attribute_facts>> reply) {
  if (absl::Status status = enter(); !status.ok())
    return give<std::map<std::string, attribute_facts>>(reply, status);
  std::map<std::string, attribute_facts> all;
  for (const std::string& name : names) {
    attribute_facts facts;
    if (const auto found = device_->bios.find(name); found != device_->bios.end())
      facts.value = found->second;
    const auto pending = device_->bios_pending.find(name);
    if (pending != device_->bios_pending.end() && pending->second != facts.value)
      facts.pending = pending->second;
    all[name] = facts;
  }
  give<std::map<std::string, attribute_facts>>(reply, std::move(all));
}

void fake_bmc::write_bios(std::map<std::string, std::string> values, done reply) {
  if (absl::Status status = enter(); !status.ok()) return give(reply, status);
  for (const auto& [name, value] : values) {
    if (device_->bios.count(name) == 0)
      return give(reply,
                  make_fault(fault::CONFIG_READ_ONLY, "no attribute " + name, value, "no such attribute"));
  }
  for (const auto& [name, value] : values) device_->bios_pending[name] = value;
  give(reply, absl::OkStatus());
}

void fake_bmc::read_device(std::vector<std::string> names,
                           answer<std::map<std::string, attribute_facts>> reply) {
  if (absl::Status status = enter(); !status.ok())
    return give<std::map<std::string, attribute_facts>>(reply, status);
  std::map<std::string, attribute_facts> all;
  for (const std::string& name : names) {
    attribute_facts facts;
    const auto found = device_->device_attributes.find(name);
    if (found != device_->device_attributes.end()) facts.value = found->second;
    all[name] = facts;
  }
  give<std::map<std::string, attribute_facts>>(reply, std::move(all));
}

void fake_bmc::write_device(std::map<std::string, std::string> values, done reply) {
  if (absl::Status status = enter(); !status.ok()) return give(reply, status);
  for (const auto& [name, value] : values) {
    const auto found = device_->device_attributes.find(name);
    if (found == device_->device_attributes.end()) {
      return give(reply,
                  make_fault(fault::CONFIG_READ_ONLY, "no attribute " + name, value, "no such attribute"));
    }
    found->second = value;
  }
  give(reply, absl::OkStatus());
}

void fake_bmc::read_nvlink(answer<nvlink_facts> reply) {
  if (absl::Status status = enter(); !status.ok()) return give<nvlink_facts>(reply, status);
  give<nvlink_facts>(reply, device_->nvlink);
}

}  // namespace busbar::devices
