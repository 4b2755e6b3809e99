// Valves, PDUs and caps at the edge: shown with what is read of them now, listed, watched, and their acts handed
// on as they were asked.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "actors/core/errors.hpp"
#include "tests/integration/edge/edge_fixture.hpp"

namespace busbar::test {
namespace {

class edge_equipment : public edge_fixture {
 protected:
  void SetUp() override {
    edge_fixture::SetUp();
    rack_->declare(1);
    core::journal_batch batch;
    for (const char* name : {"r01/supply", "r01/return"}) {
      auto valve = std::make_shared<journal::Valve>();
      valve->set_name(name);
      valve->mutable_spec()->set_kind("isolation");
      valve->mutable_spec()->set_member("m01");
      valve->set_mode("manual");
      valve->set_proof("proven");
      valve->set_health(journal::HEALTH_GOOD);
      valve->mutable_lease()->set_holder("alice");
      batch.put(std::shared_ptr<const journal::Valve>(std::move(valve)));
    }
    auto pdu = std::make_shared<journal::Pdu>();
    pdu->set_name("r01/u01");
    pdu->mutable_spec()->set_protocol("snmp");
    journal::Outlet& outlet = *pdu->add_outlets();
    outlet.set_id("3");
    outlet.set_feeds("p01");
    outlet.set_state(journal::Outlet::ON);
    batch.put(std::shared_ptr<const journal::Pdu>(std::move(pdu)));
    rack_->commit(std::move(batch));
    rack_->intercept([this](std::shared_ptr<const core::command> what, core::answer_ptr answer) {
      seen_ = *what;
      answer->finish(core::command_result{});
    });
    serve();
  }

  void read(const std::string& point, double value, const char* unit) {
    core::named_reading row;
    row.name = point;
    row.what.value = value;
    row.what.unit = unit;
    row.what.quality = core::reading_quality::good;
    board_->put({&row, 1});
  }
  v1::Valve valve(const std::string& name, grpc::StatusCode expected = grpc::StatusCode::OK) {
    call context;
    v1::GetRequest request;
    request.set_name(name);
    v1::Valve found;
    EXPECT_EQ(stub_->GetValve(&context, request, &found).error_code(), expected) << name;
    return found;
  }

  std::optional<core::command> seen_;
};

TEST_F(edge_equipment, a_valve_is_shown_with_its_lease_and_with_what_is_read_now) {
  EXPECT_FALSE(valve("racks/r01/valves/supply").status().position().has_value()) << "never read is not 0";
  read("r01/valves/supply/position", 40, "%");
  const v1::Valve found = valve("racks/r01/valves/supply");
  EXPECT_EQ(found.name(), "racks/r01/valves/supply");
  EXPECT_EQ(found.spec().controller(), "racks/r01/controllers/m01");
  EXPECT_EQ(found.status().position().value(), 40);
  EXPECT_EQ(found.status().position().quality(), v1::QUALITY_GOOD);
  EXPECT_EQ(found.status().lease().holder(), "alice");
  EXPECT_FALSE(found.status().has_commanded_percent());
  board_->mark_stale("r01/valves", INT64_MAX);
  EXPECT_EQ(valve("racks/r01/valves/supply").status().position().quality(), v1::QUALITY_STALE);
  valve("racks/r01/valves/nowhere", grpc::StatusCode::NOT_FOUND);
  valve("racks/r01/pdus/u01", grpc::StatusCode::NOT_FOUND);
}

TEST_F(edge_equipment, lists_have_filters_and_pages) {
  v1::ListRequest request;
  request.set_parent("racks/r01");
  request.set_page_size(1);
  std::vector<std::string> names;
  do {
    call context;
    v1::ListValvesResponse page;
    ASSERT_TRUE(stub_->ListValves(&context, request, &page).ok());
    ASSERT_EQ(page.valves_size(), 1);
    names.push_back(page.valves(0).name());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(names, (std::vector<std::string>{"racks/r01/valves/return", "racks/r01/valves/supply"}));
  request.set_filter("status.proof=failed");
  call context;
  v1::ListValvesResponse none;
  ASSERT_TRUE(stub_->ListValves(&context, request, &none).ok());
  EXPECT_EQ(none.valves_size(), 0);
  call of_pdus;
  v1::ListPdusResponse pdus;
  v1::ListRequest all;
  read("r01/pdus/u01/3/power", 330, "W");
  ASSERT_TRUE(stub_->ListPdus(&of_pdus, all, &pdus).ok());
  ASSERT_EQ(pdus.pdus_size(), 1);
  EXPECT_EQ(pdus.pdus(0).outlets(0).power().value(), 330);
  EXPECT_FALSE(pdus.pdus(0).outlets(0).current().has_value());
}

TEST_F(edge_equipment, what_is_stored_may_be_old_and_is_then_not_shown_as_good) {
  why_old_ = "the store takes no writes";
  EXPECT_EQ(valve("racks/r01/valves/supply").status().health(), v1::HEALTH_UNKNOWN);
  call context;
  v1::GetRequest request;
  request.set_name("racks/r01/pdus/u01");
  v1::Pdu pdu;
  ASSERT_TRUE(stub_->GetPdu(&context, request, &pdu).ok());
  EXPECT_EQ(pdu.outlets(0).state(), v1::Outlet::UNKNOWN);
  EXPECT_EQ(pdu.conditions(0).type(), "MAY_BE_OLD");
}

TEST_F(edge_equipment, acts_reach_their_owner_as_they_were_asked) {
  v1::SetValveRequest set;
  set.mutable_act()->set_name("racks/r01/valves/supply");
  set.mutable_act()->set_reason("hose");
  set.mutable_act()->set_validate_only(true);
  set.set_opening_percent(12.5);
  set.mutable_lease()->set_seconds(90);
  call first;
  v1::Operation answer;
  ASSERT_TRUE(stub_->SetValve(&first, set, &answer).ok());
  EXPECT_EQ(seen_->verb, "valve_set");
  EXPECT_EQ(seen_->target, "r01/supply");
  EXPECT_EQ(seen_->arguments, (std::map<std::string, std::string>{{"lease_s", "90"}, {"opening_percent", "12.5"}}));
  EXPECT_TRUE(seen_->validate_only);
  v1::SwitchOutletRequest power;
  power.mutable_act()->set_name("racks/r01/pdus/u01");
  power.set_outlet("3");
  power.set_wish("cycle");
  call second;
  ASSERT_TRUE(stub_->SwitchOutlet(&second, power, &answer).ok());
  EXPECT_EQ(seen_->arguments, (std::map<std::string, std::string>{{"outlet", "3"}, {"wish", "cycle"}}));
  power.set_wish("toggle");
  call third;
  EXPECT_EQ(stub_->SwitchOutlet(&third, power, &answer).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::SetPowerCapRequest cap;
  cap.mutable_act()->set_name("racks/r01");
  call fourth;
  ASSERT_TRUE(stub_->SetPowerCap(&fourth, cap, &answer).ok());
  EXPECT_EQ(seen_->verb, "power_cap");
  EXPECT_TRUE(seen_->arguments.empty()) << "no watts: the limit goes away";
  v1::ActRequest release;
  release.set_name("racks/r01/valves/supply");
  call fifth;
  ASSERT_TRUE(stub_->ReleaseValve(&fifth, release, &answer).ok());
  EXPECT_EQ(seen_->verb, "valve_release");
}

TEST_F(edge_equipment, an_etag_of_before_is_refused) {
  v1::SetValveRequest set;
  set.mutable_act()->set_name("racks/r01/valves/supply");
  set.mutable_act()->set_etag(valve("racks/r01/valves/supply").etag());
  call first;
  v1::Operation answer;
  EXPECT_TRUE(stub_->SetValve(&first, set, &answer).ok());
  set.mutable_act()->set_etag("0");
  call second;
  EXPECT_EQ(stub_->SetValve(&second, set, &answer).error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(edge_equipment, a_watch_shows_what_is_there_what_changes_and_what_goes) {
  v1::WatchRequest request;
  request.add_kinds("valves");
  request.add_kinds("pdus");
  call context;
  const auto stream = stub_->Watch(&context, request);
  v1::WatchResponse news;
  std::vector<std::string> names;
  while (stream->Read(&news) && !news.has_bookmark()) names.push_back(news.has_valve() ? news.valve().name() : news.pdu().name());
  EXPECT_EQ(names, (std::vector<std::string>{"racks/r01/valves/return", "racks/r01/valves/supply", "racks/r01/pdus/u01"}));
  core::journal_batch batch;
  batch.erase(core::object_kind::valve, "r01/supply");
  rack_->commit(std::move(batch));
  while (stream->Read(&news) && news.has_bookmark()) {
  }
  EXPECT_TRUE(news.deleted());
  EXPECT_EQ(news.valve().name(), "racks/r01/valves/supply");
  context.TryCancel();
}

}  // namespace
}  // namespace busbar::test
