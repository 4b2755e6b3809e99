#include "actors/node/device_calls.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "actors/core/digest.hpp"
#include "actors/core/errors.hpp"
#include "actors/core/mutant.hpp"
#include "actors/core/regular_file.hpp"
#include "actors/node/identity_logic.hpp"

namespace busbar::node {
namespace {

using core::fault;

// Adapts a driver's typed answer to the one form that goes back to the logic.
template <class T>
devices::answer<T> typed(call_answer reply) {
  return [reply = std::move(reply)](absl::StatusOr<T> result) {
    if (result.ok()) {
      reply(absl::OkStatus(), call_facts(*std::move(result)));
    } else {
      reply(result.status(), std::monostate{});
    }
  };
}

devices::done plain(call_answer reply) {
  return [reply = std::move(reply)](absl::Status status) { reply(std::move(status), std::monostate{}); };
}

std::string kind_key_of(const journal::Node& node) {
  if (node.spec().kind() == journal::COMPUTE_TRAY) return "compute_tray";
  if (node.spec().kind() == journal::RACK_CONTROLLER) return "rack_controller";
  return node.spec().kind() == journal::SWITCH_TRAY ? "switch_tray" : "power_shelf";
}

absl::StatusOr<devices::credentials> credentials_for(const device_context& context, call_op op) {
  const journal::Node& node = *context.node;
  const auto vaulted = [&context](std::string user,
                                  const std::string& name) -> absl::StatusOr<devices::credentials> {
    auto password = context.secrets->get(name);
    if (!password.ok()) return password.status();
    return devices::credentials{std::move(user), *std::move(password)};
  };
  if (op == call_op::login_own || op == call_op::create_own_account)
    return vaulted(own_account(context.rack_uid), own_secret(node));
  if (op == call_op::create_interlock_account)
    return vaulted(interlock_account(context.rack_uid), interlock_secret(node));
  const auto& logins = context.spec->manifest().factory_logins();
  const auto row = logins.find(kind_key_of(node));
  if (row == logins.end()) {
    return core::make_fault(fault::CREDENTIAL_FACTORY_REFUSED,
                            "the manifest names no factory login for this kind of member");
  }
  auto factory = context.secrets->site_login(row->second);
  const bool manifest = op == call_op::login_factory || op == call_op::restore_factory_password;
  if (!factory.ok() || manifest) return factory;
  return vaulted(factory->user, breakglass_secret(node));
}

void with_credentials(devices::bmc& driver, const device_context& context, const call& wanted,
                      call_answer reply) {
  auto login = credentials_for(context, wanted.op);
  if (!login.ok()) return reply(login.status(), std::monostate{});
  if (wanted.op == call_op::create_own_account)
    return driver.create_account(*std::move(login), "Administrator", plain(std::move(reply)));
  if (wanted.op == call_op::create_interlock_account)
    return driver.create_account(*std::move(login), "Operator", plain(std::move(reply)));
  if (wanted.op == call_op::set_factory_password || wanted.op == call_op::restore_factory_password)
    return driver.set_password(*std::move(login), plain(std::move(reply)));
  driver.login(*std::move(login), typed<devices::session_facts>(std::move(reply)));
}

// The URI carries a token that is good once, for this boot of this member.
void set_boot_once(devices::bmc& driver, const device_context& context, call_answer reply) {
  const std::string& serial = context.node->identity().serial();
  const std::string token =
      context.agents->issue_token(context.node->name(), is_placeholder_serial(serial) ? "" : serial);
  const journal::Staging& staging = context.spec->baseline().staging();
  const char* const joint = staging.uri().find('?') == std::string::npos ? "?" : "&";
  devices::boot_facts boot;
  boot.enabled = "Once";
  boot.target = staging.boot();
  boot.uri = fmt::format("{}{}token={}&endpoint={}", staging.uri(), joint, token,
                         context.spec->manifest().agent_endpoint());
  driver.set_boot_once(boot, [reply = std::move(reply), uri = boot.uri](absl::Status status) {
    reply(std::move(status), uri);
  });
}

void check_image(const device_context& context, const call& wanted, call_answer reply) {
  const std::string path = (std::filesystem::path(context.site_dir) / wanted.text).string();
  const std::string expected = wanted.names.front();
  context.run_blocking([path, expected, reply = std::move(reply)]() {
    const auto bytes = core::read_regular_file(path, core::image_file_bytes);
    if (!bytes.ok()) {
      return reply(core::make_fault(fault::FIRMWARE_DIGEST,
                                    "the image cannot be read: " + std::string(bytes.status().message())),
                   std::monostate{});
    }
    const std::string seen = core::to_hex(core::sha256(*bytes));
    if (seen == expected) return reply(absl::OkStatus(), std::monostate{});
    reply(core::make_fault(
              fault::FIRMWARE_DIGEST,
              fmt::format("the image {} has SHA-256 {}, the baseline says {}", path, seen, expected), expected,
              seen),
          std::monostate{});
  });
}

// What takes energy away goes out at once; what brings it, on a permit that holds as it leaves.
void reset(devices::bmc& driver, const device_context& context, const call& wanted, call_answer reply) {
  const bool off = wanted.reset == devices::reset_type::force_off ||
                   wanted.reset == devices::reset_type::graceful_shutdown;
  if (off) return driver.reset(wanted.reset, plain(std::move(reply)));
  const auto allowed = [lease = wanted.lease, last_ns = wanted.not_after_ns, clock = context.clock] {
    const bool holds = lease != nullptr && lease->holds() && clock().monotonic_ns <= last_ns;
    return holds || BUSBAR_MUTANT(withdrawn_permit_used);
  };
  driver.reset_if(wanted.reset, allowed, plain(std::move(reply)));
}

using attribute_map = std::map<std::string, devices::attribute_facts>;

void firmware_call(devices::bmc& driver, const device_context& context, const call& wanted,
                   call_answer reply) {
  if (wanted.op == call_op::push_firmware) {
    const std::string path = (std::filesystem::path(context.site_dir) / wanted.text).string();
    return driver.push_firmware(wanted.names.front(), path, typed<std::string>(std::move(reply)));
  }
  if (wanted.op == call_op::find_update)
    return driver.find_update(wanted.text, typed<std::string>(std::move(reply)));
  if (wanted.op == call_op::find_unnamed_update)
    return driver.find_unnamed_update(typed<std::string>(std::move(reply)));
  if (wanted.op == call_op::read_task)
    return driver.read_task(wanted.text, typed<devices::task_facts>(std::move(reply)));
  if (wanted.op == call_op::reset_manager) return driver.reset_manager(plain(std::move(reply)));
  driver.read_firmware(typed<std::vector<devices::component_facts>>(std::move(reply)));
}

void read_call(devices::bmc& driver, const call& wanted, call_answer reply) {
  switch (wanted.op) {
    case call_op::probe:
      return driver.probe(typed<devices::probe_facts>(std::move(reply)));
    case call_op::delete_session:
      return driver.delete_session(wanted.text, plain(std::move(reply)));
    case call_op::identify:
      return driver.identify(typed<devices::identity_facts>(std::move(reply)));
    case call_op::list_accounts:
      return driver.list_accounts(typed<std::vector<devices::account_facts>>(std::move(reply)));
    case call_op::read_power:
      return driver.read_power(typed<devices::power_facts>(std::move(reply)));
    case call_op::read_boot_once:
      return driver.read_boot_once(typed<devices::boot_facts>(std::move(reply)));
    case call_op::read_detectors:
      return driver.read_detectors(typed<std::vector<devices::detector_facts>>(std::move(reply)));
    case call_op::read_inventory:
      return driver.read_inventory(typed<devices::inventory_facts>(std::move(reply)));
    case call_op::read_bios:
      return driver.read_bios(wanted.names, typed<attribute_map>(std::move(reply)));
    case call_op::write_bios:
      return driver.write_bios(wanted.values, plain(std::move(reply)));
    case call_op::read_device:
      return driver.read_device(wanted.names, typed<attribute_map>(std::move(reply)));
    case call_op::write_device:
      return driver.write_device(wanted.values, plain(std::move(reply)));
    case call_op::read_nvlink:
      return driver.read_nvlink(typed<devices::nvlink_facts>(std::move(reply)));
    case call_op::delete_interlock_account:
    case call_op::delete_own_account:
    case call_op::restore_factory_password:
    case call_op::find_unnamed_update:
    case call_op::bind:
    case call_op::reset:
    case call_op::login_factory:
    case call_op::login_own:
    case call_op::login_breakglass:
    case call_op::create_own_account:
    case call_op::create_interlock_account:
    case call_op::set_factory_password:
    case call_op::set_boot_once:
    case call_op::read_firmware:
    case call_op::check_image:
    case call_op::push_firmware:
    case call_op::find_update:
    case call_op::read_task:
    case call_op::reset_manager:
      break;
  }
  reply(absl::InternalError(fmt::format("call {} has no driver method", name_of(wanted.op))),
        std::monostate{});
}

bool needs_credentials(call_op op) {
  return op == call_op::login_factory || op == call_op::login_own || op == call_op::login_breakglass ||
         op == call_op::create_own_account || op == call_op::create_interlock_account ||
         op == call_op::set_factory_password || op == call_op::restore_factory_password;
}

bool is_firmware(call_op op) {
  return op == call_op::push_firmware || op == call_op::find_update ||
         op == call_op::find_unnamed_update || op == call_op::read_task || op == call_op::reset_manager || op == call_op::read_firmware;
}

}  // namespace

void start_device_call(const std::shared_ptr<devices::bmc>& driver, device_context context,
                       const call& wanted, call_answer reply) {
  if (wanted.op == call_op::check_image) return check_image(context, wanted, std::move(reply));
  if (driver == nullptr) {
    return reply(core::make_fault(fault::BMC_UNREACHABLE, "no address of this BMC is known yet"),
                 std::monostate{});
  }
  if (needs_credentials(wanted.op)) return with_credentials(*driver, context, wanted, std::move(reply));
  if (wanted.op == call_op::set_boot_once) return set_boot_once(*driver, context, std::move(reply));
  if (wanted.op == call_op::reset) return reset(*driver, context, wanted, std::move(reply));
  if (wanted.op == call_op::delete_own_account)
    return driver->delete_account(own_account(context.rack_uid), plain(std::move(reply)));
  if (wanted.op == call_op::delete_interlock_account)
    return driver->delete_account(interlock_account(context.rack_uid), plain(std::move(reply)));
  if (is_firmware(wanted.op)) return firmware_call(*driver, context, wanted, std::move(reply));
  read_call(*driver, wanted, std::move(reply));
}

agent::Run make_run(const std::string& run_id, const journal::SuiteTest& test) {
  agent::Run request;
  request.set_run_id(run_id);
  request.set_test(test.name());
  request.set_probe(test.probe());
  *request.mutable_parameters() = {test.parameters().begin(), test.parameters().end()};
  *request.mutable_duration() = test.duration();
  request.mutable_deadline()->set_seconds(2 * test.duration().seconds() + 30);
  request.mutable_lease()->set_seconds(10);
  for (const journal::MetricRule& rule : test.metrics()) request.add_metrics(rule.name());
  return request;
}

}  // namespace busbar::node
