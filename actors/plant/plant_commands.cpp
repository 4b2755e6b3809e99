#include "actors/plant/plant_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "actors/core/errors.hpp"

namespace busbar::plant {

using core::fault;

namespace {

absl::StatusOr<std::optional<double>> number_argument(const core::command& what, const std::string& key) {
  const auto found = what.arguments.find(key);
  if (found == what.arguments.end()) return std::optional<double>();
  double value = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [rest, error] = std::from_chars(found->second.data(), end, value);
  if (error != std::errc() || rest != end) {
    return absl::InvalidArgumentError(fmt::format("{}: '{}' is no number", key, found->second));
  }
  return std::optional<double>(value);
}

absl::Status refuse_apply(const core::command& what, const std::string& instance, bool busy) {
  if (what.plant == nullptr) return core::make_fault(fault::SPEC_INVALID, "the request carries no plant");
  if (what.plant->plant() != instance) {
    return core::make_fault(
        fault::UNKNOWN_TARGET,
        fmt::format("this daemon holds plant {}, the file is of plant {}", instance, what.plant->plant()));
  }
  if (busy && !what.validate_only)
    return absl::UnavailableError("the plant is just writing its state; ask again");
  return absl::OkStatus();
}

std::string would_be(const override_wanted& wanted) {
  std::string text;
  if (wanted.supply_c) text += fmt::format("supply {} C", *wanted.supply_c);
  if (wanted.dp_kpa) text += fmt::format("{}pressure {} kPa", text.empty() ? "" : ", ", *wanted.dp_kpa);
  return text;
}

}  // namespace

absl::StatusOr<override_wanted> override_of(const core::command& what, const std::string& operation) {
  override_wanted wanted;
  wanted.operation_id = operation;
  wanted.holder = what.principal.name();
  wanted.reason = what.reason;
  const auto supply = number_argument(what, "supply_c");
  if (!supply.ok()) return supply.status();
  const auto dp = number_argument(what, "dp_kpa");
  if (!dp.ok()) return dp.status();
  const auto lease = number_argument(what, "lease_s");
  if (!lease.ok()) return lease.status();
  wanted.supply_c = *supply;
  wanted.dp_kpa = *dp;
  constexpr double most_s = 1e9;
  if (*lease) wanted.lease_ns = static_cast<std::int64_t>(std::clamp(**lease, -1.0, most_s) * ns_per_s);
  return wanted;
}

absl::Status refuse_command(const core::command& what, const std::string& instance, const cdu_map& cdus,
                            bool busy) {
  if (what.verb == "plant_apply") return refuse_apply(what, instance, busy);
  if (what.verb != "cdu_set" && what.verb != "cdu_release")
    return absl::InvalidArgumentError(fmt::format("a plant does not know {}", what.verb));
  const auto found = cdus.find(what.target);
  if (found == cdus.end())
    return core::make_fault(fault::UNKNOWN_TARGET, fmt::format("no CDU {}", what.target));
  if (what.verb == "cdu_release") return refuse_release(found->second, what.principal.name());
  const auto wanted = override_of(what, {});
  return wanted.ok() ? refuse_override(found->second, *wanted) : wanted.status();
}

std::shared_ptr<const core::command_result> validated(const core::command& what, const cdu_map& cdus,
                                                      const journal::PlantSpec& stored) {
  auto result = std::make_shared<core::command_result>();
  result->message = "valid; nothing was done";
  if (what.verb == "cdu_set") {
    const journal::Cdu& cdu = cdus.at(what.target).cdu;
    const auto wanted = override_of(what, {});
    const auto now = [](const journal::SetPoint& row) {
      return row.has_asked() ? fmt::format("{}", row.asked()) : std::string("unknown");
    };
    std::vector<std::string> racks;
    for (const auto& rack : cdu.spec().racks()) racks.push_back(rack.rack());
    result->message = fmt::format(
        "valid; nothing was done. It would hold {} at {} for {} s (now: supply {} C, pressure {} kPa); it "
        "feeds {}",
        cdu.name(), wanted.ok() ? would_be(*wanted) : "", wanted.ok() ? wanted->lease_ns / ns_per_s : 0,
        now(cdu.supply()), now(cdu.dp()), fmt::join(racks, ", "));
  }
  if (what.verb == "cdu_release")
    result->message =
        "valid; nothing was done. Its set-points would move on by themselves from where they are";
  if (what.verb == "plant_apply") result->changes["digest"] = stored.digest() + " -> " + what.plant->digest();
  return result;
}

declared_plant declare_plant(const journal::PlantSpec& spec, const cdu_map& known,
                             const std::function<std::string()>& new_uuid) {
  declared_plant plant;
  plant.spec = spec;
  std::set<std::string> names;
  for (const journal::CduSpec& row : spec.cdus()) {
    names.insert(row.name());
    const auto before = known.find(row.name());
    const journal::Cdu* const cdu = before == known.end() ? nullptr : &before->second.cdu;
    plant.cdus.push_back(
        std::make_shared<const journal::Cdu>(declare(row, cdu, cdu == nullptr ? new_uuid() : "")));
  }
  for (const auto& [name, state] : known) {
    if (!names.contains(name)) plant.removed.push_back(name);
  }
  return plant;
}

core::journal_batch batch_of(const declared_plant& plant, const core::command& what,
                             const std::string& operation) {
  core::journal_batch batch;
  for (const auto& cdu : plant.cdus) batch.put(cdu);
  for (const std::string& gone : plant.removed) batch.erase(core::object_kind::cdu, gone);
  batch.put_record(std::string(spec_record), plant.spec.SerializeAsString());
  journal::Event event;
  event.set_object(plant.spec.plant());
  event.set_kind("plant");
  event.set_type("spec_applied");
  event.set_severity("info");
  event.set_operation_id(operation);
  *event.mutable_principal() = what.principal;
  event.set_message(fmt::format("{} CDUs", plant.spec.cdus_size()));
  (*event.mutable_details())["digest"] = plant.spec.digest();
  batch.events.push_back(std::move(event));
  return batch;
}

const cdu_state* feeds(const cdu_map& cdus, std::string_view rack) {
  for (const auto& [name, state] : cdus) {
    const auto& rows = state.cdu.spec().racks();
    if (std::any_of(rows.begin(), rows.end(), [rack](const auto& row) { return row.rack() == rack; }))
      return &state;
  }
  return nullptr;
}

plant_view view_of(const std::string& plant, const cdu_state& of, core::instant now) {
  plant_view view;
  view.plant = plant;
  view.cdu = of.cdu.name();
  view.mode = of.cdu.mode();
  view.waits_for = of.cdu.waits_for();
  view.health = of.cdu.health();
  if (!of.run.facts.has_value()) return view;
  const devices::cdu_facts& facts = *of.run.facts;
  view.reading_age_ns = now.monotonic_ns - of.run.read_at_ns;
  view.supply_c = facts.supply_c;
  view.dp_kpa = facts.dp_kpa;
  view.flow_lpm = facts.flow_lpm;
  view.supply_set_point_c = facts.supply_set_point.value;
  view.dp_set_point_kpa = facts.dp_set_point.value;
  view.short_why = of.run.short_why;
  view.cooling_short = !view.short_why.empty();
  if (!is_fresh(of.run, now)) view.health = journal::HEALTH_UNKNOWN;
  return view;
}

}  // namespace busbar::plant
