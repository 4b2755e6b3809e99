// What a spec makes of a rack: its members as they start, what a changed spec keeps, and the interlock's
// arming record. Pure.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/core/journal_batch.hpp"
#include "actors/rack/rack_rules.hpp"
#include "busbar/interlock/interlock.pb.h"

namespace busbar::rack {

struct applied_spec {
  std::shared_ptr<const journal::Rack> rack;
  std::vector<std::shared_ptr<const journal::Node>> members;  // all declared, old ones with their state
  std::vector<std::string> removed;                           // names no longer declared
};

// A member that stays in its slot keeps its state; one whose BMC MAC (without one: fixed address) changed
// starts again. Whether that may be is refuse_member_changes' to say.
applied_spec apply_spec(const journal::RackSpec& spec, const journal::Rack* before, const member_map& members,
                        const std::function<std::string()>& new_uuid);

// The highest generation of an arming record that the interlock was seen to hold; kept among the rack's
// facts.
constexpr std::string_view generation_fact = "interlock_generation";
std::uint64_t armed_generation(const journal::Rack& rack);

// The highest line of the interlock's latch file that was seen; kept among the rack's facts as well.
constexpr std::string_view latch_number_fact = "interlock_record_number";
std::uint64_t known_latch_number(const journal::Rack& rack);

// Trays that ask to be armed, one record at a time: what asks while one is under way rides in the next.
class arming_queue {
 public:
  void ask(const std::string& tray) { next_.insert(tray); }
  // Whether a record is to be sent now; its trays are then under way.
  bool begin();
  // Every tray of a record sent in this life. What a node tells of itself waits in the rack's inbox while a
  // commit is under way: a record built by that alone could miss a tray of the record before, and the
  // interlock refuses to lose one.
  const std::set<std::string>& joining() const { return sent_; }
  // The record under way was answered: its trays.
  std::set<std::string> end();

 private:
  std::set<std::string> next_, now_, sent_;
};

// The certificate that the CDU at the manifest's address was first read under, or that an operator trusted;
// kept among the rack's facts.
constexpr std::string_view latched_fact = "latched:";  // and the device's name: which of its detectors
constexpr std::string_view cdu_pin_fact = "cdu_pin";
constexpr std::string_view cdu_address_fact = "cdu_address";
std::optional<std::string> known_cdu_pin(const journal::Rack& rack);

// Every member whose interlock account exists (and those joining), with what the interlock needs to watch and
// command it; the CDU, once its certificate is known, with the coolant's limits. password_of gives the
// vaulted password of the interlock's account; empty leaves the member out. Without cdu_login there is no CDU
// in it.
interlock::ArmingRecord arming_record(const journal::Rack& rack, const member_map& members,
                                      const std::set<std::string>& joining, std::uint64_t generation,
                                      const std::function<std::string(const journal::Node&)>& password_of,
                                      const std::optional<devices::credentials>& cdu_login = {});

// What of a record does not wait for a member to ask: of the CDU, of the limits, and of each member that is
// armed already. Name to a fingerprint without passwords.
std::map<std::string, std::string> record_shape(const journal::Rack& rack, const member_map& members);
std::map<std::string, std::string> shape_of(const interlock::ArmingRecord& record);

}  // namespace busbar::rack
