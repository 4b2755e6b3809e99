// What every implementation of the device contract does, on the fake and on the Redfish driver over an
// in-process service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "actors/core/errors.hpp"
#include "actors/devices/bmc_fake.hpp"
#include "actors/devices/redfish/redfish_bmc.hpp"
#include "tests/unit/devices/scripted_service.hpp"
#include "tests/unit/devices/test_loop.hpp"

namespace busbar::devices {
namespace {

using core::fault;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct world {
  std::shared_ptr<fake_device> device = std::make_shared<fake_device>();
  std::shared_ptr<redfish::test_loop> loop = std::make_shared<redfish::test_loop>();
  std::shared_ptr<bmc> driver;
};

using maker = void (*)(world&);

void over_redfish(world& w) {
  const auto service = std::make_shared<redfish::scripted_service>(w.device);
  const auto transport = std::make_shared<redfish::scripted_transport>(
      [service](const redfish::http_request& request) { return service->handle(request); });
  w.driver =
      redfish::make_redfish_factory(transport, w.loop)->make_bmc("127.0.0.1:8443", journal::COMPUTE_TRAY);
}

void over_fake(world& w) {
  w.driver = std::make_shared<fake_bmc>(w.device);
}

class device_contract : public ::testing::TestWithParam<maker> {
 protected:
  device_contract() { GetParam()(w); }

  // Calls a method, lets pending delays pass, and expects exactly one answer.
  template <class T, class Method, class... Arguments>
  absl::StatusOr<T> ask(Method method, Arguments... arguments) {
    int answers = 0;
    absl::StatusOr<T> result = absl::InternalError("no answer");
    (w.driver.get()->*method)(arguments..., [&answers, &result](absl::StatusOr<T> got) {
      ++answers;
      result = std::move(got);
    });
    w.loop->pass_time();
    EXPECT_EQ(answers, 1);
    return result;
  }
  template <class Method, class... Arguments>
  absl::Status tell(Method method, Arguments... arguments) {
    int answers = 0;
    absl::Status result = absl::InternalError("no answer");
    (w.driver.get()->*method)(arguments..., [&answers, &result](absl::Status got) {
      ++answers;
      result = std::move(got);
    });
    w.loop->pass_time();
    EXPECT_EQ(answers, 1);
    return result;
  }
  absl::StatusOr<session_facts> log_in(std::string user = "root", std::string password = "factory") {
    return ask<session_facts>(&bmc::login, credentials{user, password});
  }

  world w;
};

#define EXPECT_FAULT(status, code) \
  EXPECT_THAT(core::fault_of(status), ::testing::Optional(fault::code)) << (status).ToString()

TEST_P(device_contract, probe_needs_no_login_and_learns_the_certificate) {
  const auto facts = ask<probe_facts>(&bmc::probe);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->certificate_sha256, "aa11");
  EXPECT_EQ(facts->uuid, w.device->uuid);
  EXPECT_THAT(w.device->acts, IsEmpty());
}

TEST_P(device_contract, refuses_another_certificate_and_tries_no_login) {
  w.driver->pin("bb22");
  EXPECT_FAULT(ask<probe_facts>(&bmc::probe).status(), CERTIFICATE_CHANGED);
  EXPECT_FAULT(log_in().status(), CERTIFICATE_CHANGED);
  EXPECT_THAT(w.device->acts, IsEmpty());
  w.driver->pin("aa11");
  EXPECT_TRUE(log_in().ok());
}

TEST_P(device_contract, a_certificate_that_changes_later_is_refused) {
  ASSERT_TRUE(log_in().ok());
  w.device->certificate = "cc33";
  EXPECT_FAULT(ask<power_facts>(&bmc::read_power).status(), CERTIFICATE_CHANGED);
}

TEST_P(device_contract, a_wrong_password_is_named_and_no_more_than_three_are_sent) {
  for (int i = 0; i < 3; ++i) EXPECT_FAULT(log_in("root", "wrong").status(), CREDENTIAL_FACTORY_REFUSED);
  EXPECT_FAULT(log_in("root", "wrong").status(), CREDENTIAL_LOCKED_OUT);
  EXPECT_FAULT(log_in().status(), CREDENTIAL_LOCKED_OUT);
  EXPECT_EQ(w.device->count_acts("refused root"), 3u);
  w.driver->forget_wrong_logins();
  EXPECT_TRUE(log_in().ok());
}

TEST_P(device_contract, a_locked_account_is_called_locked) {
  w.device->accounts["root"].locked = true;
  EXPECT_FAULT(log_in().status(), CREDENTIAL_LOCKED_OUT);
  EXPECT_EQ(w.device->count_acts("refused root"), 1u);
}

TEST_P(device_contract, logins_that_were_refused_before_are_counted_on) {
  w.driver->count_wrong_logins({{"root", 1}, {"busbar-1", 1}});
  EXPECT_FAULT(log_in("root", "wrong").status(), CREDENTIAL_FACTORY_REFUSED);
  EXPECT_FAULT(log_in().status(), CREDENTIAL_LOCKED_OUT);
  EXPECT_EQ(w.device->count_acts("refused root"), 1u);
}

TEST_P(device_contract, an_account_is_deleted_once_and_one_that_is_not_there_is_success) {
  w.device->accounts["busbar-1"] = {"secret", "Administrator"};
  ASSERT_TRUE(log_in().ok());
  EXPECT_TRUE(tell(&bmc::delete_account, std::string("busbar-1")).ok());
  EXPECT_EQ(w.device->accounts.count("busbar-1"), 0u);
  EXPECT_TRUE(tell(&bmc::delete_account, std::string("busbar-1")).ok());
  EXPECT_EQ(w.device->count_acts("delete busbar-1"), 1u);
}

TEST_P(device_contract, another_certificate_is_named_with_both_pins) {
  w.driver->pin("bb22");
  const absl::Status refused = ask<probe_facts>(&bmc::probe).status();
  EXPECT_EQ(core::expected_of(refused), "bb22");
  EXPECT_EQ(core::seen_of(refused), "aa11");
}

TEST_P(device_contract, a_second_login_leaves_one_session) {
  w.device->accounts["busbar-1"] = {"secret", "Administrator"};
  const auto first = log_in();
  const auto second = log_in("busbar-1", "secret");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->uri, second->uri);
  EXPECT_EQ(w.device->sessions.size(), 1u);
}

TEST_P(device_contract, a_full_session_table_is_named) {
  w.device->session_limit = 1;
  w.device->sessions["/redfish/v1/SessionService/Sessions/99"] = "someone";
  EXPECT_FAULT(log_in().status(), SESSION_LIMIT);
}

TEST_P(device_contract, a_lost_session_is_opened_again_once) {
  ASSERT_TRUE(log_in().ok());
  w.device->sessions.clear();
  EXPECT_TRUE(ask<power_facts>(&bmc::read_power).ok());
  EXPECT_EQ(w.device->count_acts("login root"), 2u);
  EXPECT_EQ(w.device->sessions.size(), 1u);
}

TEST_P(device_contract, a_password_changed_elsewhere_gives_a_fault_and_never_a_lock_out) {
  ASSERT_TRUE(log_in().ok());
  w.device->sessions.clear();
  w.device->accounts["root"].password = "other";
  EXPECT_FAULT(ask<power_facts>(&bmc::read_power).status(), CREDENTIAL_FACTORY_REFUSED);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(ask<power_facts>(&bmc::read_power).ok());
  EXPECT_LE(w.device->count_acts("refused root"), 3u);
}

TEST_P(device_contract, deleting_a_session_that_is_gone_is_no_error) {
  const auto session = log_in();
  ASSERT_TRUE(session.ok());
  EXPECT_TRUE(tell(&bmc::delete_session, std::string("/redfish/v1/SessionService/Sessions/77")).ok());
  EXPECT_TRUE(tell(&bmc::delete_session, session->uri).ok());
  EXPECT_THAT(w.device->sessions, IsEmpty());
}

TEST_P(device_contract, nothing_is_read_without_a_session) {
  EXPECT_FAULT(ask<power_facts>(&bmc::read_power).status(), BMC_FORBIDDEN);
}

TEST_P(device_contract, a_demanded_password_change_is_told_and_can_be_done) {
  w.device->change_required_of = "root";
  const auto session = log_in();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->password_change_required);
  EXPECT_FAULT(ask<power_facts>(&bmc::read_power).status(), CREDENTIAL_CHANGE_REQUIRED);
  EXPECT_TRUE(tell(&bmc::set_password, credentials{"root", "vaulted"}).ok());
  EXPECT_TRUE(ask<power_facts>(&bmc::read_power).ok());
  EXPECT_EQ(w.device->accounts["root"].password, "vaulted");
}

TEST_P(device_contract, identity_is_what_the_device_says) {
  ASSERT_TRUE(log_in().ok());
  const auto facts = ask<identity_facts>(&bmc::identify);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->serial, "SN1");
  EXPECT_EQ(facts->slot, "c07");
  EXPECT_EQ(facts->mac, "02:18:01:00:00:07");
  EXPECT_EQ(facts->model, "VR NVL Compute Tray");
}

TEST_P(device_contract, an_account_is_created_once) {
  ASSERT_TRUE(log_in().ok());
  EXPECT_TRUE(tell(&bmc::create_account, credentials{"busbar-1", "s1"}, std::string("Administrator")).ok());
  EXPECT_TRUE(tell(&bmc::create_account, credentials{"busbar-1", "s1"}, std::string("Administrator")).ok());
  EXPECT_EQ(w.device->count_acts("create busbar-1"), 1u);
  const auto accounts = ask<std::vector<account_facts>>(&bmc::list_accounts);
  ASSERT_TRUE(accounts.ok());
  EXPECT_EQ(accounts->size(), 2u);
}

TEST_P(device_contract, a_changed_password_is_used_for_the_next_session) {
  ASSERT_TRUE(log_in().ok());
  ASSERT_TRUE(tell(&bmc::set_password, credentials{"root", "vaulted"}).ok());
  w.device->sessions.clear();
  EXPECT_TRUE(ask<power_facts>(&bmc::read_power).ok());
  EXPECT_EQ(w.device->count_acts("refused root"), 0u);
}

TEST_P(device_contract, power_is_read_and_commanded) {
  ASSERT_TRUE(log_in().ok());
  auto power = ask<power_facts>(&bmc::read_power);
  ASSERT_TRUE(power.ok());
  EXPECT_EQ(power->state, journal::POWER_OFF);
  EXPECT_THAT(power->offered, Contains("ForceOff"));
  EXPECT_TRUE(tell(&bmc::reset, reset_type::on).ok());
  EXPECT_EQ(ask<power_facts>(&bmc::read_power)->state, journal::POWER_ON);
}

TEST_P(device_contract, a_reset_to_the_state_it_is_in_is_success) {
  ASSERT_TRUE(log_in().ok());
  EXPECT_TRUE(tell(&bmc::reset, reset_type::force_off).ok());
  EXPECT_EQ(w.device->count_acts("reset ForceOff"), 0u);
}

TEST_P(device_contract, a_reset_type_that_is_not_offered_is_named) {
  ASSERT_TRUE(log_in().ok());
  w.device->offered = {"On", "ForceOff"};
  EXPECT_FAULT(tell(&bmc::reset, reset_type::graceful_shutdown), POWER_RESET_NOT_OFFERED);
  EXPECT_FAULT(tell(&bmc::reset, reset_type::power_cycle), POWER_RESET_NOT_OFFERED);
}

TEST_P(device_contract, boot_once_is_read_back_as_it_was_set) {
  ASSERT_TRUE(log_in().ok());
  ASSERT_TRUE(tell(&bmc::set_boot_once, boot_facts{"Once", "UefiHttp", "https://images/1.efi?token=t"}).ok());
  const auto boot = ask<boot_facts>(&bmc::read_boot_once);
  ASSERT_TRUE(boot.ok());
  EXPECT_EQ(boot->enabled, "Once");
  EXPECT_EQ(boot->target, "UefiHttp");
  EXPECT_EQ(boot->uri, "https://images/1.efi?token=t");
}

TEST_P(device_contract, detectors_are_dry_wet_or_unknown) {
  using detector = journal::Detector;
  w.device->detectors = {{"0_ColdPlate", detector::DRY, "", std::nullopt},
                         {"0_Manifold", detector::LEAK, "", std::nullopt},
                         {"1_ColdPlate", detector::UNKNOWN, "", std::nullopt}};
  ASSERT_TRUE(log_in().ok());
  const auto rows = ask<std::vector<detector_facts>>(&bmc::read_detectors);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].name, "0_ColdPlate");
  EXPECT_EQ((*rows)[0].verdict, detector::DRY);
  EXPECT_EQ((*rows)[1].verdict, detector::LEAK);
  EXPECT_EQ((*rows)[2].verdict, detector::UNKNOWN);
}

TEST_P(device_contract, parts_are_counted_once_and_a_short_list_is_incomplete) {
  for (const char* id : {"CPU_0", "CPU_1", "GPU_0"}) {
    journal::Part part;
    part.set_kind(std::string(id).starts_with("CPU") ? "cpu" : "gpu");
    part.set_id(id);
    part.set_model("Model");
    part.set_serial(std::string("S-") + id);
    part.set_memory_gib(288);
    part.set_health(journal::HEALTH_GOOD);
    w.device->parts.push_back(part);
  }
  ASSERT_TRUE(log_in().ok());
  auto inventory = ask<inventory_facts>(&bmc::read_inventory);
  ASSERT_TRUE(inventory.ok());
  EXPECT_EQ(inventory->parts.size(), 3u);
  w.device->parts_not_shown = 2;
  inventory = ask<inventory_facts>(&bmc::read_inventory);
  ASSERT_TRUE(inventory.ok());
  EXPECT_EQ(inventory->parts.size(), 3u);
  EXPECT_FALSE(inventory->complete);
  EXPECT_FALSE(inventory->incomplete_why.empty());
}

struct image_file {
  image_file() {
    char name[] = "/tmp/busbar-image-XXXXXX";
    const int descriptor = mkstemp(name);
    if (descriptor >= 0) close(descriptor);
    path = name;
    std::ofstream(path) << "UEFI 2.4.1\n";
  }
  ~image_file() { std::filesystem::remove(path); }
  std::string path;
};

TEST_P(device_contract, firmware_is_pushed_followed_and_read_back) {
  const image_file image;
  w.device->firmware = {{"UEFI", "2.3.7"}, {"FW_BMC_0", "25.10-3"}};
  ASSERT_TRUE(log_in().ok());
  const auto none = ask<std::string>(&bmc::find_update, std::string("UEFI"));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(*none, "");
  const auto task = ask<std::string>(&bmc::push_firmware, std::string("UEFI"), image.path);
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_EQ(ask<task_facts>(&bmc::read_task, *task)->state, task_state::running);
  EXPECT_EQ(*ask<std::string>(&bmc::find_update, std::string("UEFI")), *task);
  EXPECT_EQ(*ask<std::string>(&bmc::find_update, std::string("FW_BMC_0")), "");
  EXPECT_EQ(*ask<std::string>(&bmc::find_unnamed_update), "");
  w.device->tasks_name_components = false;
  EXPECT_EQ(*ask<std::string>(&bmc::find_update, std::string("UEFI")), "");
  EXPECT_EQ(*ask<std::string>(&bmc::find_unnamed_update), *task);
  w.device->tasks_name_components = true;
  w.device->end_task(*task, true);
  EXPECT_EQ(ask<task_facts>(&bmc::read_task, *task)->state, task_state::completed);
  const auto components = ask<std::vector<component_facts>>(&bmc::read_firmware);
  ASSERT_TRUE(components.ok());
  for (const component_facts& one : *components) {
    EXPECT_EQ(one.version, one.component == "UEFI" ? "2.4.1" : "25.10-3");
  }
  w.device->tasks.clear();
  EXPECT_EQ(ask<task_facts>(&bmc::read_task, *task)->state, task_state::gone);
}

TEST_P(device_contract, firmware_for_an_unknown_component_or_from_no_image_is_refused) {
  const image_file image;
  w.device->firmware = {{"UEFI", "2.3.7"}};
  ASSERT_TRUE(log_in().ok());
  EXPECT_FAULT(ask<std::string>(&bmc::push_firmware, std::string("NOPE"), image.path).status(),
               FIRMWARE_REFUSED);
  EXPECT_FAULT(
      ask<std::string>(&bmc::push_firmware, std::string("UEFI"), std::string("/nonexistent")).status(),
      FIRMWARE_REFUSED);
  EXPECT_EQ(w.device->count_acts("push UEFI"), 0u);
}

TEST_P(device_contract, bios_values_are_pending_until_the_host_restarts) {
  w.device->bios = {{"SriovEnable", "false"}, {"PowerProfile", "Balanced"}, {"Ssid", "12"}};
  w.device->power = journal::POWER_ON;
  ASSERT_TRUE(log_in().ok());
  ASSERT_TRUE(
      tell(&bmc::write_bios, std::map<std::string, std::string>{{"SriovEnable", "true"}, {"Ssid", "13"}})
          .ok());
  using attributes = std::map<std::string, attribute_facts>;
  const std::vector<std::string> names{"SriovEnable", "PowerProfile", "Ssid", "Nope"};
  auto read = ask<attributes>(&bmc::read_bios, names);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->at("SriovEnable").value, "false");
  EXPECT_EQ(read->at("SriovEnable").pending, "true");
  EXPECT_EQ(read->at("PowerProfile").pending, std::nullopt);
  EXPECT_EQ(read->at("Ssid").pending, "13");
  EXPECT_EQ(read->at("Nope").value, std::nullopt);
  ASSERT_TRUE(tell(&bmc::reset, reset_type::force_restart).ok());
  read = ask<attributes>(&bmc::read_bios, names);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->at("SriovEnable").value, "true");
  EXPECT_EQ(read->at("SriovEnable").pending, std::nullopt);
  EXPECT_FAULT(tell(&bmc::write_bios, std::map<std::string, std::string>{{"Nope", "1"}}), CONFIG_READ_ONLY);
}

TEST_P(device_contract, device_attributes_are_read_and_set_by_dotted_names) {
  w.device->detectors = {{"0_ColdPlate", journal::Detector::DRY, "", std::nullopt}};
  w.device->device_attributes = {{"leak_reaction.critical", "None"}, {"session_timeout_s", "1800"}};
  ASSERT_TRUE(log_in().ok());
  ASSERT_TRUE(
      tell(&bmc::write_device, std::map<std::string, std::string>{{"leak_reaction.critical", "ForceOff"},
                                                                  {"session_timeout_s", "900"}})
          .ok());
  using attributes = std::map<std::string, attribute_facts>;
  const auto read = ask<attributes>(
      &bmc::read_device,
      std::vector<std::string>{"leak_reaction.critical", "session_timeout_s", "gpu_power_limit_w"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->at("leak_reaction.critical").value, "ForceOff");
  EXPECT_EQ(read->at("session_timeout_s").value, "900");
  EXPECT_EQ(read->at("gpu_power_limit_w").value, std::nullopt);
  EXPECT_FAULT(tell(&bmc::write_device, std::map<std::string, std::string>{{"gpu_power_limit_w", "1800"}}),
               CONFIG_READ_ONLY);
}

TEST_P(device_contract, nvlinks_are_counted_by_gpu) {
  journal::Part gpu;
  gpu.set_kind("gpu");
  gpu.set_id("GPU_0");
  gpu.set_serial("S-GPU_0");
  w.device->parts = {gpu};
  w.device->nvlink.links_up["GPU_0"] = 17;
  w.device->nvlink.links_announced["GPU_0"] = 18;
  w.device->nvlink.clique_id = "1";
  ASSERT_TRUE(log_in().ok());
  const auto facts = ask<nvlink_facts>(&bmc::read_nvlink);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->links_up.at("GPU_0"), 17u);
  EXPECT_EQ(facts->links_announced.at("GPU_0"), 18u);
  EXPECT_EQ(facts->clique_id, "1");
  EXPECT_TRUE(facts->complete);
}

TEST_P(device_contract, a_manager_reset_ends_the_session_and_the_next_call_logs_in_again) {
  ASSERT_TRUE(log_in().ok());
  ASSERT_TRUE(tell(&bmc::reset_manager).ok());
  EXPECT_THAT(w.device->sessions, IsEmpty());
  EXPECT_TRUE(ask<power_facts>(&bmc::read_power).ok());
  EXPECT_THAT(w.device->acts, ElementsAre("login root", "reset_manager", "login root"));
}

TEST_P(device_contract, an_unreachable_device_gives_a_fault_on_every_call) {
  ASSERT_TRUE(log_in().ok());
  w.device->reachable = false;
  EXPECT_FAULT(ask<probe_facts>(&bmc::probe).status(), BMC_UNREACHABLE);
  EXPECT_FAULT(ask<identity_facts>(&bmc::identify).status(), BMC_UNREACHABLE);
  EXPECT_FAULT(ask<power_facts>(&bmc::read_power).status(), BMC_UNREACHABLE);
  EXPECT_FAULT(tell(&bmc::reset, reset_type::on), BMC_UNREACHABLE);
  EXPECT_FAULT(ask<std::vector<detector_facts>>(&bmc::read_detectors).status(), BMC_UNREACHABLE);
  EXPECT_FAULT(ask<inventory_facts>(&bmc::read_inventory).status(), BMC_UNREACHABLE);
  EXPECT_FAULT(ask<std::vector<component_facts>>(&bmc::read_firmware).status(), BMC_UNREACHABLE);
  EXPECT_FAULT(ask<nvlink_facts>(&bmc::read_nvlink).status(), BMC_UNREACHABLE);
  w.device->reachable = true;
  EXPECT_TRUE(ask<power_facts>(&bmc::read_power).ok());
}

std::string name_of_maker(const ::testing::TestParamInfo<maker>& info) {
  return info.param == &over_redfish ? "redfish" : "fake";
}

INSTANTIATE_TEST_SUITE_P(implementations, device_contract, ::testing::Values(&over_redfish, &over_fake),
                         name_of_maker);

}  // namespace
}  // namespace busbar::devices
