// Who the device is, and who may log in to it.
#include <fmt/format.h>

#include <algorithm>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/driver.hpp"

namespace busbar::devices::redfish {

using core::fault;
using core::make_fault;

task<absl::Status> read_root(driver_ptr d) {
  if (d->root) co_return absl::OkStatus();
  request wanted;
  wanted.uri = "/redfish/v1";
  wanted.urgency = priority::safety;
  wanted.with_session = false;
  const response answer = co_await d->device->send(wanted);
  if (!answer.good()) co_return fault_of_answer(*d->device, wanted, answer);
  auto document = json_document::parse(answer.body);
  if (!document || !document->root().is_object()) {
    co_return make_fault(fault::BMC_BAD_DATA,
                         fmt::format("the service root of {} is no JSON object ({} bytes)",
                                     d->device->address(), answer.body.size()));
  }
  const json_view expand = document->root()["ProtocolFeaturesSupported"]["ExpandQuery"];
  d->device->set_expands(expand["NoLinks"].boolean().value_or(false) &&
                         expand["Levels"].boolean().value_or(false));
  d->root = *document;
  co_return absl::OkStatus();
}

task<absl::StatusOr<std::string>> root_link(driver_ptr d, std::string key) {
  const absl::Status read = co_await read_root(d);
  if (!read.ok()) co_return read;
  const auto uri = d->root->root()[key].link();
  if (!uri) {
    co_return make_fault(fault::BMC_BAD_DATA,
                         fmt::format("the service root of {} has no link {}", d->device->address(), key));
  }
  co_return *uri;
}

task<root_members> members_of_root(driver_ptr d, std::string key, priority urgency) {
  root_members result;
  const absl::StatusOr<std::string> uri = co_await root_link(d, key);
  if (!uri.ok()) {
    result.list.status = uri.status();
    result.list.http = d->root ? 404 : 0;
    result.list.complete = false;
    result.list.incomplete_why = std::string(uri.status().message());
    co_return result;
  }
  result.list = co_await fetch_list(d->device, *uri, urgency, list_of::bodies);
  result.bodies = co_await fetch_members(d->device, result.list, urgency);
  co_return result;
}

task<absl::StatusOr<probe_facts>> probe(driver_ptr d) {
  d->root.reset();
  const absl::Status read = co_await read_root(d);
  if (!read.ok()) co_return read;
  const json_view root = d->root->root();
  probe_facts facts;
  facts.certificate_sha256 = d->device->pin();
  facts.uuid = root["UUID"].text().value_or("");
  facts.vendor = root["Vendor"].text().value_or("");
  facts.product = root["Product"].text().value_or("");
  co_return facts;
}

task<absl::Status> delete_session(driver_ptr d, std::string uri) {
  if (uri.empty()) co_return absl::OkStatus();
  const bool own = uri == d->device->session_uri();
  request wanted;
  wanted.method = http_method::del;
  wanted.uri = uri;
  wanted.urgency = priority::command;
  wanted.retry_login = false;
  const response answer = co_await d->device->send(wanted);
  if (own) d->device->session_is_gone();
  if (answer.good()) co_return absl::OkStatus();
  if (answer.status.ok() && (answer.http == 401 || answer.http == 404)) co_return absl::OkStatus();
  co_return fault_of_answer(*d->device, wanted, answer);
}

namespace {

std::string slot_name(MemberKind kind, long long ordinal) {
  const char letter = kind == journal::SWITCH_TRAY       ? 's'
                      : kind == journal::POWER_SHELF     ? 'p'
                      : kind == journal::RACK_CONTROLLER ? 'm'
                                                         : 'c';
  return fmt::format("{}{:02}", letter, ordinal);
}

// The chassis that carries the slot number, by kind of member.
std::string_view slot_chassis(MemberKind kind) {
  if (kind == journal::SWITCH_TRAY) return "MGX_NVSwitch";
  if (kind == journal::POWER_SHELF) return "PowerShelf";
  if (kind == journal::RACK_CONTROLLER) return "Rack";
  return "CBC";
}

std::optional<std::string> slot_of(MemberKind kind, const std::vector<fetched>& chassis) {
  for (const fetched& one : chassis) {
    if (!one.ok() || !one.body()["Id"].text().value_or("").starts_with(slot_chassis(kind))) continue;
    const auto ordinal = decode_slot_ordinal(one.body());
    if (ordinal) return slot_name(kind, *ordinal);
  }
  return std::nullopt;
}

bool is_host_internal(json_view interface) {
  const std::string id = interface["Id"].text().value_or("");
  return id.starts_with("usb") || id.starts_with("hmc") || id == "lo" || id.starts_with("ToHost");
}

std::optional<std::string> mac_of(const std::vector<fetched>& interfaces) {
  std::optional<std::string> first;
  for (const fetched& one : interfaces) {
    const auto mac = one.ok() ? one.body()["MACAddress"].text() : std::nullopt;
    if (!mac || is_host_internal(one.body())) continue;
    if (one.body()["Id"].text() == "eth0") return lower_case(*mac);
    if (!first) first = lower_case(*mac);
  }
  return first;
}

}  // namespace

task<absl::StatusOr<identity_facts>> identify(driver_ptr d) {
  const absl::StatusOr<power_place> place = co_await find_power(d, priority::command);
  if (!place.ok()) co_return place.status();
  const fetched main = co_await fetch(d->device, place->uri, priority::command);
  if (!main.ok()) co_return main.status;
  identity_facts facts;
  facts.serial = main.body()["SerialNumber"].text();  // as it stands there: a placeholder is judged above
  facts.model = main.body()["Model"].text();

  const root_members chassis = co_await members_of_root(d, "Chassis", priority::command);
  if (chassis.list.device_failed()) co_return chassis.list.status;
  facts.slot = slot_of(d->kind, chassis.bodies);

  const root_members managers = co_await members_of_root(d, "Managers", priority::command);
  if (managers.list.device_failed()) co_return managers.list.status;
  const fetched* manager = nullptr;
  for (const fetched& one : managers.bodies) {
    if (!one.ok()) continue;
    const bool named =
        std::find(place->managers.begin(), place->managers.end(), one.uri) != place->managers.end();
    if (manager == nullptr || named) manager = &one;
    if (named) break;
  }
  const auto link = manager == nullptr ? std::nullopt : manager->body()["EthernetInterfaces"].link();
  if (!link) co_return facts;
  const listing list = co_await fetch_list(d->device, *link, priority::command, list_of::bodies);
  if (list.device_failed()) co_return list.status;
  const std::vector<fetched> interfaces = co_await fetch_members(d->device, list, priority::command);
  facts.mac = mac_of(interfaces);
  co_return facts;
}

namespace {

task<absl::StatusOr<std::string>> accounts_uri(driver_ptr d) {
  const absl::StatusOr<std::string> service = co_await root_link(d, "AccountService");
  if (!service.ok()) co_return service.status();
  const fetched body = co_await fetch(d->device, *service, priority::command);
  if (!body.ok()) co_return body.status;
  const auto uri = body.body()["Accounts"].link();
  if (!uri) {
    co_return make_fault(fault::BMC_BAD_DATA,
                         fmt::format("{} on {} links no Accounts", *service, d->device->address()));
  }
  co_return *uri;
}

}  // namespace

task<absl::StatusOr<std::vector<account_facts>>> list_accounts(driver_ptr d) {
  const absl::StatusOr<std::string> uri = co_await accounts_uri(d);
  if (!uri.ok()) co_return uri.status();
  const listing list = co_await fetch_list(d->device, *uri, priority::command, list_of::bodies);
  if (!list.ok()) co_return list.status;
  const std::vector<fetched> bodies = co_await fetch_members(d->device, list, priority::command);
  std::vector<account_facts> accounts;
  for (const fetched& body : bodies) {
    // An account that cannot be read may be the one asked for: then nothing is known about the list.
    if (!body.ok()) co_return body.status;
    accounts.push_back(decode_account(body.body(), body.uri));
  }
  if (!list.complete) {
    co_return make_fault(fault::BMC_BAD_DATA, fmt::format("the account list of {} is incomplete: {}",
                                                          d->device->address(), list.incomplete_why));
  }
  co_return accounts;
}

task<absl::Status> create_account(driver_ptr d, credentials account, std::string role) {
  const absl::StatusOr<std::vector<account_facts>> accounts = co_await list_accounts(d);
  if (!accounts.ok()) co_return accounts.status();
  for (const account_facts& one : *accounts) {
    if (one.name == account.user) co_return absl::OkStatus();
  }
  const absl::StatusOr<std::string> uri = co_await accounts_uri(d);
  if (!uri.ok()) co_return uri.status();
  const std::string body = json_object({{"UserName", json_quote(account.user)},
                                        {"Password", json_quote(account.password)},
                                        {"RoleId", json_quote(role)}});
  const response answer = co_await post(d->device, *uri, body, priority::command);
  if (answer.good() || has_message(answer.body, "ResourceAlreadyExists")) co_return absl::OkStatus();
  request named;
  named.method = http_method::post;
  named.uri = *uri;
  co_return fault_of_answer(*d->device, named, answer);
}

task<absl::Status> set_password(driver_ptr d, credentials account) {
  std::string uri;
  // A device that demands a new password shows nothing but the account itself, and named it at login.
  if (account.user == d->device->session_user()) uri = d->device->account_to_change();
  if (uri.empty()) {
    const absl::StatusOr<std::vector<account_facts>> accounts = co_await list_accounts(d);
    if (!accounts.ok()) co_return accounts.status();
    for (const account_facts& one : *accounts) {
      if (one.name == account.user) uri = one.uri;
    }
  }
  if (uri.empty()) {
    co_return make_fault(fault::BMC_BAD_DATA,
                         fmt::format("{} has no account {} whose password could be changed",
                                     d->device->address(), account.user));
  }
  const std::string body = json_object({{"Password", json_quote(account.password)}});
  const absl::Status changed = co_await patch(d->device, uri, body, priority::command);
  if (changed.ok()) d->device->password_changed(account);
  co_return changed;
}

task<absl::Status> delete_account(driver_ptr d, std::string user) {
  const absl::StatusOr<std::vector<account_facts>> accounts = co_await list_accounts(d);
  if (!accounts.ok()) co_return accounts.status();
  const auto found = std::find_if(accounts->begin(), accounts->end(),
                                  [&user](const account_facts& one) { return one.name == user; });
  if (found == accounts->end()) co_return absl::OkStatus();
  request wanted;
  wanted.method = http_method::del;
  wanted.uri = found->uri;
  wanted.urgency = priority::command;
  const response answer = co_await d->device->send(wanted);
  if (answer.good() || (answer.status.ok() && answer.http == 404)) co_return absl::OkStatus();
  co_return fault_of_answer(*d->device, wanted, answer);
}

}  // namespace busbar::devices::redfish
