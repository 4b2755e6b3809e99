#include "daemon/busbard/rpc/convert_plant.hpp"

#include <google/protobuf/util/time_util.h>

#include <string>
#include <string_view>

#include "daemon/busbard/rpc/convert.hpp"
#include "daemon/busbard/rpc/convert_equipment.hpp"

namespace busbar::rpc {
namespace {

using google::protobuf::util::TimeUtil;

v1::Health health_of(journal::Health health) {
  const int number = static_cast<int>(health);
  return v1::Health_IsValid(number) ? static_cast<v1::Health>(number) : v1::HEALTH_UNKNOWN;
}

// Its points: readings of its own, of its pumps, and of each rack's connector under the rack's name.
void put_readings(v1::CduStatus& status, const std::string& cdu, const core::reading_board& board) {
  constexpr std::string_view pump = "pump";
  const std::string prefix = cdu + "/";
  for (const core::named_reading& one : board.under(prefix)) {
    const std::string name = one.name.substr(prefix.size());
    const std::size_t slash = name.find('/');
    if (name.starts_with(pump) && slash != std::string::npos) {
      v1::Pump& row = *status.add_pumps();
      row.set_id(name.substr(pump.size(), slash - pump.size()));
      *row.mutable_speed() = reading_to_v1(one.what);
      if (one.what.quality == core::reading_quality::good && one.what.value) row.set_running(*one.what.value > 0.5);
      continue;
    }
    v1::NamedReading& row = *status.add_readings();
    row.set_name(name);
    *row.mutable_reading() = reading_to_v1(one.what);
  }
}

void put_time(google::protobuf::Timestamp* to, std::int64_t wall_ns) { *to = TimeUtil::NanosecondsToTimestamp(wall_ns); }

}  // namespace

v1::Cdu cdu_to_v1(const journal::Cdu& cdu, std::uint64_t revision, const core::reading_board* board) {
  v1::Cdu out;
  out.set_name("cdus/" + cdu.name());
  out.set_uid(cdu.uid());
  out.set_etag(etag_of(revision));
  out.set_generation(cdu.generation());
  out.set_revision(revision);
  out.set_protocol(cdu.spec().protocol());
  out.set_address(cdu.spec().address());
  for (const journal::FedRack& rack : cdu.spec().racks()) out.add_racks("racks/" + rack.rack());
  v1::CduStatus& status = *out.mutable_status();
  status.set_mode(cdu.mode());
  status.set_waits_for(cdu.waits_for());
  status.set_health(health_of(cdu.health()));
  // What it was last READ to hold; what was only asked for is not shown as a set-point.
  if (cdu.supply().has_proven()) status.set_supply_set_point_c(cdu.supply().proven());
  if (cdu.dp().has_proven()) status.set_dp_set_point_kpa(cdu.dp().proven());
  for (const journal::Detector& row : cdu.detectors()) {
    v1::Detector& added = *status.add_detectors();
    added.set_name(row.name());
    const int verdict = static_cast<int>(row.verdict());
    added.set_verdict(v1::Detector::Verdict_IsValid(verdict) ? static_cast<v1::Detector::Verdict>(verdict)
                                                             : v1::Detector::UNKNOWN);
    added.set_detail(row.detail());
  }
  for (const journal::Demand& row : cdu.demands()) {
    v1::RackDemand& added = *status.add_demands();
    added.set_rack("racks/" + row.rack());
    added.set_flow_lpm(row.flow_lpm());
    added.set_heat_kw(row.heat_kw());
    if (row.live()) put_time(added.mutable_until(), row.until_wall_ns());
  }
  if (cdu.has_lease()) {
    v1::Lease& lease = *status.mutable_lease();
    lease.set_holder(cdu.lease().holder());
    lease.set_reason(cdu.lease().reason());
    put_time(lease.mutable_until(), cdu.lease().until_wall_ns());
  }
  for (const journal::Condition& row : cdu.conditions()) {
    v1::Condition& added = *out.add_conditions();
    added.set_type(row.type());
    added.set_health(health_of(row.health()));
    added.set_message(row.message());
    if (row.since_wall_ns() > 0) put_time(added.mutable_since(), row.since_wall_ns());
  }
  if (board != nullptr) put_readings(status, cdu.name(), *board);
  return out;
}

}  // namespace busbar::rpc
