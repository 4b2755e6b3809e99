// What every device shows of itself, and its truth.
#include <array>
#include <cstdio>

#include "daemon/sim/device.hpp"

namespace busbar::sim {

std::string uuid_of(std::uint64_t key) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%08x-%04x-4%03x-8%03x-%012llx", static_cast<unsigned>(key >> 32),
                static_cast<unsigned>(key >> 16) & 0xFFFFU, static_cast<unsigned>(key >> 4) & 0xFFFU,
                static_cast<unsigned>(key) & 0xFFFU,
                static_cast<unsigned long long>(physics::mix(key) & 0xFFFFFFFFFFFFULL));
  return text.data();
}

std::string device::shown_serial(instant now) const {
  if (faulty(fault_kind::na_serial, now)) {
    return "NA";
  }
  return faulty(fault_kind::wrong_serial, now) ? identity_.serial + "X" : identity_.serial;
}

int device::shown_ordinal(instant now) const {
  return identity_.ordinal + (faulty(fault_kind::wrong_slot, now) ? 1 : 0);
}

std::string device::shown_mac(instant now) const {
  if (!faulty(fault_kind::duplicate_bmc, now)) {
    return identity_.mac;
  }
  std::string next = identity_.mac;  // 02:18:01:00:00:07 -> ..:08
  const unsigned long last = std::stoul(next.substr(next.size() - 2), nullptr, 16);
  std::array<char, 3> text{};
  std::snprintf(text.data(), text.size(), "%02lx", (last + 1) & 0xFFUL);
  return next.substr(0, next.size() - 2) + text.data();
}

json device::value(const value_name& name, instant now) const {
  using reader = json (*)(const device&, const value_name&, instant);
  const auto seconds = [](instant length) {
    return std::chrono::duration_cast<std::chrono::seconds>(length).count();
  };
  static const std::map<std::string_view, reader> readers = {
      {"serial",
       [](const device& self, const value_name&, instant when) { return json(self.shown_serial(when)); }},
      {"uuid", [](const device& self, const value_name&, instant) { return json(self.identity_.uuid); }},
      {"mac", [](const device& self, const value_name&, instant when) { return json(self.shown_mac(when)); }},
      {"address",
       [](const device& self, const value_name&, instant) { return json(self.identity_.address); }},
      {"ordinal",
       [](const device& self, const value_name&, instant when) { return json(self.shown_ordinal(when)); }},
      {"slot_label", [](const device& self, const value_name&,
                        instant when) { return json("Slot " + std::to_string(self.shown_ordinal(when))); }},
      {"tray_index", [](const device& self, const value_name&,
                        instant when) { return json(self.shown_ordinal(when) - 1); }},
      {"host_name",
       [](const device& self, const value_name&, instant) {
         std::string host = self.identity_.member;
         for (char& letter : host) {
           letter = letter == '/' ? '-' : letter;
         }
         return json(host + "-bmc");
       }},
      {"manager_version",
       [](const device& self, const value_name&, instant) {
         return json(self.firmware_.version(self.tree_->manager_component()));
       }},
      {"date_time",
       [](const device& self, const value_name&, instant when) { return json(self.around_.wall(when)); }},
      {"bmc_started", [](const device& self, const value_name&,
                         instant) { return json(self.around_.wall(self.bmc_started_)); }},
      {"firmware", [](const device& self, const value_name& what,
                      instant) { return json(self.firmware_.version(what.arguments.at(0))); }},
      {"certificate_sha256",
       [](const device& self, const value_name&, instant) { return json(self.certificate_sha256_); }},
      {"part", [](const device& self, const value_name& what,
                  instant) { return json(self.identity_.serial + "-" + std::string(what.arguments.at(0))); }},
      {"part_uuid",
       [](const device& self, const value_name& what, instant) {
         const std::uint64_t key =
             physics::hash_of(what.arguments.at(0), physics::hash_of(self.identity_.uuid, 7));
         return json(uuid_of(key));
       }},
      {"number", [](const device&, const value_name& what,
                    instant) { return json(as_number(what.arguments.at(0)).value_or(0)); }},
  };
  if (name.name == "session_timeout") {
    return seconds(access_.session_timeout());
  }
  if (name.name == "lockout_s") {
    return seconds(access_.lockout());
  }
  const auto found = readers.find(name.name);
  return found == readers.end() ? json(nullptr) : found->second(*this, name, now);
}

bool device::hidden(std::string_view, instant) const {
  return false;
}

device::action_reply device::post(const std::string&, const json&, instant, request_note&) {
  return std::nullopt;
}
device::action_reply device::patch(const std::string&, const json&, instant, request_note&) {
  return std::nullopt;
}

json device::truth(instant now) const {
  json accounts = json::object();
  for (const auto& [name, each] : access_.accounts()) {
    accounts[name] = {{"role", each.role},
                      {"factory_password", each.password == factory_password_},
                      {"locked", each.locked_until > now}};
  }
  json versions = json::object();
  for (const firmware_row& row : tree_->firmware()) {
    versions[row.component] = firmware_.version(row.component);
  }
  return {{"member", identity_.member}, {"address", identity_.address},
          {"mac", identity_.mac},       {"serial", identity_.serial},
          {"bmc_alive", bmc_alive_},    {"sessions", access_.sessions().size()},
          {"accounts", accounts},       {"firmware", versions},
          {"points_reported", points_reported_}};
}

json device::save() const {
  return {{"accounts", access_.save()},
          {"firmware", firmware_.save()},
          {"session_timeout_ns", access_.session_timeout().count()}};
}

void device::load(const json& saved) {
  access_.load(saved.at("accounts"));
  firmware_.load(saved.at("firmware"));
  access_.set_session_timeout(instant(saved.at("session_timeout_ns").get<instant::rep>()));
}

}  // namespace busbar::sim
