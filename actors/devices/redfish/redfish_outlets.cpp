#include "actors/devices/redfish/redfish_outlets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/driver.hpp"

namespace busbar::devices::redfish {
namespace {

using core::fault;
using core::make_fault;

// A power strip behind an address.
struct strip {
  driver_ptr d;
  credentials login;
  std::string pdu;
};

// An excerpt of today's schema, or the sensor that older services embed; in another unit than asked it says
// nothing.
std::optional<double> measured(json_view today, json_view older, std::string_view unit) {
  if (!today.missing()) return decode_excerpt(today);
  if (older["ReadingUnits"].text() != unit) return std::nullopt;
  return decode_excerpt(older);
}

std::string word_of(outlet_act act) {
  return act == outlet_act::on ? "On" : "Off";
}

std::string body_of(const std::string& word) {
  return json_object({{"PowerState", json_quote(word)}});
}

outlet_facts decode_outlet(const fetched& one) {
  outlet_facts facts;
  facts.id = last_part(one.uri);
  if (!one.ok()) {
    facts.raw_state = std::string(one.status.message());
    return facts;
  }
  const json_view body = one.body();
  facts.name = body["Name"].text().value_or("");
  const auto state = body["PowerState"].text();
  if (state == "On") facts.state = outlet_state::on;
  if (state == "Off") facts.state = outlet_state::off;
  if (facts.state == outlet_state::unknown)
    facts.raw_state = body["PowerState"].missing() ? "" : body["PowerState"].raw();
  facts.current_a = measured(body["CurrentAmps"], body["CurrentSensor"], "A");
  facts.power_w = measured(body["PowerWatts"], body["PowerSensor"], "W");
  return facts;
}

std::string which_of(const strip& s) {
  return s.pdu.empty() ? "one" : s.pdu;
}

task<absl::StatusOr<listing>> find_outlets(std::shared_ptr<strip> s, priority urgency) {
  if (!s->login.user.empty()) s->d->device->use_basic(s->login);
  const absl::StatusOr<std::string> equipment = co_await root_link(s->d, "PowerEquipment");
  if (!equipment.ok()) co_return equipment.status();
  const fetched body = co_await fetch(s->d->device, *equipment, urgency);
  if (!body.ok()) co_return body.status;
  const auto pdus = body.body()["RackPDUs"].link();
  if (!pdus) {
    co_return make_fault(fault::BMC_BAD_DATA,
                         fmt::format("{} on {} links no RackPDUs", *equipment, s->d->device->address()));
  }
  const listing list = co_await fetch_list(s->d->device, *pdus, urgency);
  if (!list.ok()) co_return list.status;
  std::vector<std::string> fit;
  for (const std::string& uri : list.members) {
    if (s->pdu.empty() || last_part(uri) == s->pdu) fit.push_back(uri);
  }
  if (fit.size() != 1) {
    std::vector<std::string> ids;
    for (const std::string& uri : list.members) ids.push_back(last_part(uri));
    co_return absl::NotFoundError(fmt::format("{} on {} lists the PDUs [{}]; {} is wanted", *pdus,
                                              s->d->device->address(), fmt::join(ids, ", "), which_of(*s)));
  }
  const fetched unit = co_await fetch(s->d->device, fit.front(), urgency);
  if (!unit.ok()) co_return unit.status;
  const auto outlets = unit.body()["Outlets"].link();
  if (!outlets) co_return absl::NotFoundError(fmt::format("{} links no Outlets", fit.front()));
  listing found = co_await fetch_list(s->d->device, *outlets, urgency);
  if (!found.ok()) co_return found.status;
  co_return found;
}

task<absl::StatusOr<std::vector<outlet_facts>>> read_outlets(std::shared_ptr<strip> s) {
  const absl::StatusOr<listing> list = co_await find_outlets(s, priority::telemetry);
  if (!list.ok()) co_return list.status();
  std::vector<outlet_facts> outlets;
  for (const fetched& one : co_await fetch_members(s->d->device, *list, priority::telemetry)) {
    if (one.device_failed()) co_return one.status;
    outlets.push_back(decode_outlet(one));
  }
  co_return outlets;
}

task<absl::Status> ask_outlet(std::shared_ptr<strip> s, std::string outlet, outlet_act act) {
  const absl::StatusOr<listing> list = co_await find_outlets(s, priority::command);
  if (!list.ok()) co_return list.status();
  const auto uri = std::find_if(list->members.begin(), list->members.end(),
                                [&outlet](const std::string& one) { return last_part(one) == outlet; });
  if (uri == list->members.end()) {
    co_return absl::NotFoundError(
        fmt::format("{} on {} has no outlet {}", list->uri, s->d->device->address(), outlet));
  }
  const fetched body = co_await fetch(s->d->device, *uri, priority::command);
  if (!body.ok()) co_return body.status;
  if (body.body()["PowerControlLocked"].boolean() == true) {
    co_return absl::FailedPreconditionError(
        fmt::format("{} on {} is locked at the PDU", *uri, s->d->device->address()));
  }
  const action_facts action = decode_action(body.body(), "Outlet.PowerControl", "PowerState");
  const std::string word = word_of(act);
  if (!action.target) {
    co_return absl::FailedPreconditionError(fmt::format(
        "{} on {} cannot be switched: it offers no Outlet.PowerControl", *uri, s->d->device->address()));
  }
  if (!action.values.empty() &&
      std::find(action.values.begin(), action.values.end(), word) == action.values.end()) {
    co_return absl::FailedPreconditionError(fmt::format(
        "{} on {} offers [{}], not {}", *uri, s->d->device->address(), fmt::join(action.values, ", "), word));
  }
  const response answer = co_await post(s->d->device, *action.target, body_of(word), priority::command);
  if (answer.good()) co_return absl::OkStatus();
  if (!answer.status.ok()) co_return answer.status;
  request asked;
  asked.method = http_method::post;
  asked.uri = *action.target;
  co_return fault_of_answer(*s->d->device, asked, answer);
}

class redfish_outlets final : public outlet_bank {
 public:
  redfish_outlets(std::shared_ptr<strip> s, std::shared_ptr<scheduler> loop)
      : strip_(std::move(s)), loop_(std::move(loop)) {}
  ~redfish_outlets() override {
    loop_->post([s = strip_] { s->d->device->close(); });
  }
  void read(std::function<void(absl::StatusOr<std::vector<outlet_facts>>)> reply) override {
    loop_->post([s = strip_, reply = std::move(reply)] {
      start<absl::StatusOr<std::vector<outlet_facts>>>(read_outlets(s), reply);
    });
  }
  void ask(const std::string& outlet, outlet_act act, std::function<void(absl::Status)> reply) override {
    loop_->post([s = strip_, outlet, act, reply = std::move(reply)] {
      start<absl::Status>(ask_outlet(s, outlet, act), reply);
    });
  }

 private:
  const std::shared_ptr<strip> strip_;
  const std::shared_ptr<scheduler> loop_;
};

}  // namespace

std::shared_ptr<outlet_bank> make_redfish_outlets(std::string address, credentials login, std::string pdu,
                                                  std::shared_ptr<http_transport> transport,
                                                  std::shared_ptr<scheduler> loop, device_options options) {
  auto s = std::make_shared<strip>();
  s->d = std::make_shared<driver>();
  s->d->device = std::make_shared<device>(std::move(address), std::move(transport), loop, options);
  s->login = std::move(login);
  s->pdu = std::move(pdu);
  return std::make_shared<redfish_outlets>(std::move(s), std::move(loop));
}

}  // namespace busbar::devices::redfish
