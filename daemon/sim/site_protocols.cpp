// The site behind faces other than Redfish: the CDU's registers, the PDUs' objects.
#include <cmath>
#include <utility>

#include "daemon/sim/site_model.hpp"

namespace busbar::sim {

void site_model::note(journal_record record, instant now) {
  if (!hooks_.on_request) {
    return;
  }
  record.number = ++requests_;
  record.received = now;
  record.answered = now;
  hooks_.on_request(record);
}

std::optional<double> site_model::register_value(std::string_view point, instant now) {
  advance(now);
  const double value = cdu_->register_value(point, now);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

absl::Status site_model::set_register(std::string_view point, double value, const std::string& peer,
                                      instant now) {
  advance(now);
  const absl::Status done = cdu_->set_register(point, value, now);
  journal_record record;
  record.device = cdu_->identity().member;
  record.address = cdu_->identity().address;
  record.peer = peer;
  record.method = "MODBUS";
  record.path = std::string(point);
  record.status = done.ok() ? 0 : 1;
  record.act = "control";
  record.argument = std::string(point) + " " + json(value).dump();
  note(std::move(record), now);
  return done;
}

std::map<oid_path, mib_value> site_model::snmp_objects(const std::string& address, instant now) {
  advance(now);
  const auto found = by_address_.find(address);
  if (found == by_address_.end() || found->second->identity().kind != device_kind::rack_pdu) {
    return {};
  }
  return static_cast<const rack_pdu*>(found->second)->objects(now);
}

absl::Status site_model::set_snmp_object(const std::string& address, const oid_path& object,
                                         std::int64_t value, const std::string& peer, const std::string& user,
                                         instant now) {
  advance(now);
  const auto found = by_address_.find(address);
  if (found == by_address_.end() || found->second->identity().kind != device_kind::rack_pdu) {
    return absl::NotFoundError("there is no PDU at " + address);
  }
  auto* const pdu = static_cast<rack_pdu*>(found->second);
  journal_record record;
  const absl::Status done = pdu->set_object(object, value, now, record.argument);
  record.device = pdu->identity().member;
  record.address = address;
  record.peer = peer;
  record.method = "SNMP SET";
  for (const std::uint32_t part : object) {
    record.path += (record.path.empty() ? "" : ".") + std::to_string(part);
  }
  record.user = user;
  record.status = done.ok() ? 0 : 1;
  record.act = "outlet";
  note(std::move(record), now);
  return done;
}

}  // namespace busbar::sim
