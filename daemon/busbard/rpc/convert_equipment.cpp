#include "daemon/busbard/rpc/convert_equipment.hpp"

#include <google/protobuf/util/time_util.h>

#include <string>

#include "daemon/busbard/rpc/convert.hpp"
#include "daemon/busbard/rpc/names.hpp"

namespace busbar::rpc {
namespace {

using google::protobuf::util::TimeUtil;

std::string rack_of(const std::string& name) { return name.substr(0, name.find('/')); }

v1::Health health_of(journal::Health health) {
  const int number = static_cast<int>(health);
  return v1::Health_IsValid(number) ? static_cast<v1::Health>(number) : v1::HEALTH_UNKNOWN;
}

template <class Message>
void fill_conditions(Message& to, const google::protobuf::RepeatedPtrField<journal::Condition>& from) {
  for (const journal::Condition& row : from) {
    v1::Condition& added = *to.add_conditions();
    added.set_type(row.type());
    added.set_health(health_of(row.health()));
    added.set_message(row.message());
    if (row.since_wall_ns() > 0) *added.mutable_since() = TimeUtil::NanosecondsToTimestamp(row.since_wall_ns());
  }
}

void fill_reading(v1::Reading* to, const core::reading_board* board, const std::string& point) {
  if (board == nullptr) return;
  const auto found = board->find(point);
  if (found.has_value()) *to = reading_to_v1(*found);
}

}  // namespace

v1::Reading reading_to_v1(const core::reading& from) {
  v1::Reading out;
  if (from.value.has_value()) out.set_value(*from.value);
  out.set_unit(from.unit);
  out.set_quality(static_cast<v1::Quality>(static_cast<int>(from.quality)));
  out.set_source(from.source);
  if (from.source_wall_ns > 0) *out.mutable_source_time() = TimeUtil::NanosecondsToTimestamp(from.source_wall_ns);
  if (from.received_wall_ns > 0) *out.mutable_received_time() = TimeUtil::NanosecondsToTimestamp(from.received_wall_ns);
  return out;
}

v1::Valve valve_to_v1(const journal::Valve& valve, std::uint64_t revision, const core::reading_board* board) {
  v1::Valve out;
  const std::string rack = rack_of(valve.name());
  out.set_name(public_name(valve.name(), rack));
  out.set_uid(valve.uid());
  out.set_etag(etag_of(revision));
  out.set_generation(valve.generation());
  out.set_revision(revision);
  v1::ValveSpec& spec = *out.mutable_spec();
  spec.set_kind(valve.spec().kind());
  spec.set_controller(public_name(rack + "/" + valve.spec().member(), rack));
  spec.set_authority(valve.spec().authority());
  spec.set_fail_position(valve.spec().fail_position());
  *spec.mutable_stroke() = valve.spec().stroke();
  spec.set_least_percent(valve.spec().least_percent());
  spec.set_most_percent(valve.spec().most_percent() > 0 ? valve.spec().most_percent() : 100.0);
  v1::ValveStatus& status = *out.mutable_status();
  status.set_mode(valve.mode());
  status.set_proof(valve.proof());
  status.set_condition(valve.condition());
  if (valve.has_commanded_percent()) status.set_commanded_percent(valve.commanded_percent());
  if (valve.has_proven_percent()) status.set_proven_percent(valve.proven_percent());
  const std::string point = rack + "/valves" + valve.name().substr(rack.size()) + "/position";
  fill_reading(status.mutable_position(), board, point);
  if (valve.has_lease()) {
    status.mutable_lease()->set_holder(valve.lease().holder());
    status.mutable_lease()->set_reason(valve.lease().reason());
    *status.mutable_lease()->mutable_until() = TimeUtil::NanosecondsToTimestamp(valve.lease().until_wall_ns());
  }
  status.set_health(health_of(valve.health()));
  if (!valve.operation_id().empty()) status.set_operation(public_name(valve.operation_id(), rack));
  fill_conditions(out, valve.conditions());
  return out;
}

v1::Pdu pdu_to_v1(const journal::Pdu& pdu, std::uint64_t revision, const core::reading_board* board) {
  v1::Pdu out;
  const std::string rack = rack_of(pdu.name());
  out.set_name(public_name(pdu.name(), rack));
  out.set_uid(pdu.uid());
  out.set_etag(etag_of(revision));
  out.set_generation(pdu.generation());
  out.set_revision(revision);
  out.set_protocol(pdu.spec().protocol());
  out.set_dialect(pdu.spec().dialect());
  out.set_address(pdu.spec().address());
  const std::string base = rack + "/pdus" + pdu.name().substr(rack.size()) + "/";
  for (const journal::Outlet& row : pdu.outlets()) {
    v1::Outlet& added = *out.add_outlets();
    added.set_id(row.id());
    added.set_label(row.label());
    added.set_feeds(row.feeds());
    added.set_state(row.state() == journal::Outlet::ON    ? v1::Outlet::ON
                    : row.state() == journal::Outlet::OFF ? v1::Outlet::OFF
                                                          : v1::Outlet::UNKNOWN);
    if (row.observed_wall_ns() > 0) *added.mutable_observed_time() = TimeUtil::NanosecondsToTimestamp(row.observed_wall_ns());
    added.set_proof(row.proof());
    added.set_wanted(row.wanted());
    added.set_message(row.message());
    fill_reading(added.mutable_current(), board, base + row.id() + "/current");
    fill_reading(added.mutable_power(), board, base + row.id() + "/power");
  }
  out.set_health(health_of(pdu.health()));
  fill_conditions(out, pdu.conditions());
  return out;
}

}  // namespace busbar::rpc
