// busbar's verbs of valves, outlets and caps, and how both are shown; against a daemon in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/fake_daemon.hpp"

namespace busbar::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::outcome;
using testing::sample_time;
using testing::site;

v1::Valve sample_valve() {
  v1::Valve valve;
  valve.set_name("racks/r01/valves/supply");
  valve.mutable_spec()->set_kind("isolation");
  valve.mutable_spec()->set_controller("racks/r01/controllers/m01");
  valve.mutable_spec()->set_authority("busbar");
  valve.mutable_spec()->set_fail_position("hold");
  v1::ValveStatus& status = *valve.mutable_status();
  status.set_mode("manual");
  status.set_proof("failed");
  status.set_condition("contradicted");
  status.set_commanded_percent(0);
  status.mutable_position()->set_value(0);
  status.mutable_position()->set_quality(v1::QUALITY_GOOD);
  status.mutable_lease()->set_holder("uid:1000");
  status.mutable_lease()->set_reason("hose");
  *status.mutable_lease()->mutable_until() = sample_time();
  status.mutable_lease()->mutable_until()->set_seconds(status.lease().until().seconds() + 300);
  status.set_health(v1::HEALTH_BAD);
  v1::Condition& row = *valve.add_conditions();
  row.set_type("VALVE_CONTRADICTED");
  row.set_message("told 0 %, position 0.0 %, flow 80.0 l/min");
  return valve;
}

v1::Pdu sample_pdu() {
  v1::Pdu pdu;
  pdu.set_name("racks/r01/pdus/u01");
  pdu.set_protocol("snmp");
  pdu.set_dialect("raritan_pdu2");
  pdu.set_address("10.0.0.7:161");
  pdu.set_health(v1::HEALTH_GOOD);
  for (const auto& [id, state, watts] : {std::tuple{"1", v1::Outlet::ON, 330.0},
                                         {"2", v1::Outlet::OFF, 0.0},
                                         {"3", v1::Outlet::UNKNOWN, -1.0}}) {
    v1::Outlet& outlet = *pdu.add_outlets();
    outlet.set_id(id);
    outlet.set_feeds("p01");
    outlet.set_state(state);
    if (watts < 0) continue;
    outlet.mutable_power()->set_value(watts);
    outlet.mutable_power()->set_quality(v1::QUALITY_GOOD);
  }
  return pdu;
}

class equipment_daemon final : public v1::Busbar::Service {
 public:
  explicit equipment_daemon(const std::filesystem::path& run_dir) {
    std::filesystem::create_directories(run_dir / "r01");
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + (run_dir / "r01" / "busbard.sock").string(),
                             grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~equipment_daemon() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status ListValves(grpc::ServerContext*, const v1::ListRequest*,
                          v1::ListValvesResponse* out) override {
    *out->add_valves() = sample_valve();
    return grpc::Status::OK;
  }
  grpc::Status GetValve(grpc::ServerContext*, const v1::GetRequest*, v1::Valve* out) override {
    *out = sample_valve();
    return grpc::Status::OK;
  }
  grpc::Status ListPdus(grpc::ServerContext*, const v1::ListRequest*, v1::ListPdusResponse* out) override {
    *out->add_pdus() = sample_pdu();
    return grpc::Status::OK;
  }
  grpc::Status SetValve(grpc::ServerContext*, const v1::SetValveRequest* in, v1::Operation* out) override {
    valves.push_back(*in);
    return answer(in->act(), out);
  }
  grpc::Status ReleaseValve(grpc::ServerContext*, const v1::ActRequest* in, v1::Operation* out) override {
    return answer(*in, out);
  }
  grpc::Status SwitchOutlet(grpc::ServerContext*, const v1::SwitchOutletRequest* in,
                            v1::Operation* out) override {
    outlets.push_back(*in);
    return answer(in->act(), out);
  }
  grpc::Status SetPowerCap(grpc::ServerContext*, const v1::SetPowerCapRequest* in,
                           v1::Operation* out) override {
    caps.push_back(*in);
    return answer(in->act(), out);
  }
  std::vector<v1::SetValveRequest> valves;
  std::vector<v1::SwitchOutletRequest> outlets;
  std::vector<v1::SetPowerCapRequest> caps;
  grpc::Status refusal;

 private:
  grpc::Status answer(const v1::ActRequest& in, v1::Operation* out) {
    if (!refusal.ok()) return refusal;
    out->set_target(in.name());
    if (in.validate_only()) {
      out->set_message("valid; nothing was done. It would move isolation valve r01/supply");
      return grpc::Status::OK;
    }
    out->set_name("racks/r01/operations/7");
    out->set_state(v1::Operation::RUNNING);
    return grpc::Status::OK;
  }
  std::unique_ptr<grpc::Server> server_;
};

struct here {
  site place;
  equipment_daemon daemon{place.folder()};
  outcome busbar(const std::vector<std::string>& words) const { return place.busbar(words); }
};

TEST(equipment_verbs, a_valve_and_a_pdu_are_shown_with_what_is_known_and_what_is_not) {
  here h;
  const std::string valve = h.busbar({"get", "valves"}).out;
  EXPECT_EQ(valve,
            "NAME        KIND       POSITION  TOLD  PROOF   MODE    HEALTH  HELD BY                  WHY\n"
            "r01/supply  isolation  0.0%      0%    failed  manual  bad     uid:1000 for 175s: hose  "
            "VALVE_CONTRADICTED: "
            "told 0 %, position 0.0 %, flow 80.0 l/min\n");
  EXPECT_EQ(h.busbar({"get", "pdus", "-o", "wide"}).out,
            "NAME     SPEAKS        OUTLETS                 POWER    HEALTH  WHY  ADDRESS       EACH\n"
            "r01/u01  raritan_pdu2  1 on, 1 off, 1 unknown  unknown  good    -    10.0.0.7:161  1=on(p01) "
            "2=off(p01) "
            "3=unknown(p01)\n");
  EXPECT_EQ(h.busbar({"get", "valves", "-o", "name"}).out, "r01/supply\n");
  EXPECT_THAT(h.busbar({"describe", "valves", "r01/supply"}).out, HasSubstr("VALVE_CONTRADICTED"));
  EXPECT_THAT(h.busbar({"get", "valves", "-o", "json"}).out, HasSubstr("\"kind\": \"ValveList\""));
}

TEST(equipment_verbs, moving_a_valve_asks_with_reason_place_and_lease) {
  here h;
  EXPECT_EQ(h.busbar({"valve", "close", "r01/supply", "--lease", "30m", "--reason", "hose", "--yes"}).code,
            exit_code::done);
  EXPECT_EQ(h.busbar({"valve", "open", "r01/supply", "--reason", "done"}).code, exit_code::done);
  EXPECT_EQ(h.busbar({"valve", "set", "r01/flow", "--to", "40", "--reason", "test", "--yes"}).code,
            exit_code::done);
  ASSERT_EQ(h.daemon.valves.size(), 3U);
  EXPECT_EQ(h.daemon.valves[0].act().name(), "racks/r01/valves/supply");
  EXPECT_EQ(h.daemon.valves[0].opening_percent(), 0);
  EXPECT_EQ(h.daemon.valves[0].lease().seconds(), 1800);
  EXPECT_EQ(h.daemon.valves[1].opening_percent(), 100);
  EXPECT_FALSE(h.daemon.valves[1].has_lease());
  EXPECT_EQ(h.daemon.valves[2].opening_percent(), 40);
}

TEST(equipment_verbs, what_is_said_wrongly_is_usage_and_nothing_is_asked) {
  here h;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"valve", "close", "r01/supply", "--yes"},                                // no reason
           {"valve", "close", "r01/supply", "--reason", "x"},                        // nobody to ask
           {"valve", "set", "r01/flow", "--reason", "x", "--yes"},                   // no place
           {"valve", "set", "r01/flow", "--to", "140", "--reason", "x", "--yes"},    // no percentage
           {"power", "off", "r01/u01", "--reason", "x", "--yes"},                    // no outlet
           {"power", "off", "r01/c07/3", "--reason", "x", "--yes"},                  // no PDU
           {"power", "cap", "r01", "--reason", "x", "--yes"},                        // no watts
           {"power", "cap", "r01", "--gpu-watts", "900", "--off", "--reason", "x"},  // both
       }) {
    const outcome made = h.busbar(words);
    EXPECT_EQ(made.code, exit_code::usage) << words[1] << ": " << made.err;
    EXPECT_FALSE(made.err.empty());
  }
  EXPECT_TRUE(h.daemon.valves.empty() && h.daemon.outlets.empty() && h.daemon.caps.empty());
}

TEST(equipment_verbs, a_dry_run_says_what_it_would_touch) {
  here h;
  const outcome made = h.busbar({"valve", "close", "r01/supply", "--dry-run"});
  EXPECT_EQ(made.code, exit_code::done);
  EXPECT_THAT(made.err,
              HasSubstr("r01/supply: valid; nothing was done. It would move isolation valve r01/supply"));
  EXPECT_TRUE(h.daemon.valves.at(0).act().validate_only());
}

TEST(equipment_verbs, outlets_are_named_behind_their_pdu_and_lists_are_one_request_each) {
  here h;
  EXPECT_EQ(h.busbar({"power", "cycle", "r01/u01/[3-4]", "--reason", "hang", "--yes"}).code, exit_code::done);
  // Of several all are asked first whether they may.
  ASSERT_EQ(h.daemon.outlets.size(), 4U);
  EXPECT_TRUE(h.daemon.outlets[0].act().validate_only());
  EXPECT_EQ(h.daemon.outlets[2].act().name(), "racks/r01/pdus/u01");
  EXPECT_EQ(h.daemon.outlets[2].outlet(), "3");
  EXPECT_EQ(h.daemon.outlets[3].outlet(), "4");
  EXPECT_EQ(h.daemon.outlets[3].wish(), "cycle");
}

TEST(equipment_verbs, caps_are_given_and_taken_back) {
  here h;
  EXPECT_EQ(h.busbar({"power", "cap", "r01/c07", "--gpu-watts", "1200", "--lease", "1h", "--reason", "heat",
                      "--yes"})
                .code,
            exit_code::done);
  EXPECT_EQ(h.busbar({"power", "cap", "r01", "--off", "--reason", "over", "--yes"}).code, exit_code::done);
  ASSERT_EQ(h.daemon.caps.size(), 2U);
  EXPECT_EQ(h.daemon.caps[0].act().name(), "racks/r01/nodes/c07");
  EXPECT_EQ(h.daemon.caps[0].gpu_watts(), 1200);
  EXPECT_EQ(h.daemon.caps[0].lease().seconds(), 3600);
  EXPECT_FALSE(h.daemon.caps[1].has_gpu_watts());
}

TEST(equipment_verbs, a_refusal_is_a_conflict_with_its_names) {
  here h;
  v1::ErrorInfo info;
  info.set_fault("COOLING_NEEDED");
  info.set_message("these hosts are not read off: r01/c01, r01/c02");
  h.daemon.refusal = testing::fault_status(grpc::StatusCode::FAILED_PRECONDITION, info);
  const outcome made = h.busbar({"valve", "close", "r01/supply", "--reason", "x", "--yes"});
  EXPECT_EQ(made.code, exit_code::conflict);
  EXPECT_THAT(made.err, HasSubstr("COOLING_NEEDED: these hosts are not read off: r01/c01, r01/c02"));
  EXPECT_THAT(made.err, HasSubstr("busbar explain COOLING_NEEDED"));
}

}  // namespace
}  // namespace busbar::cli
