#include "daemon/cli/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "actors/core/errors.hpp"
#include "actors/manifest/names.hpp"
#include "daemon/cli/json_text.hpp"

namespace busbar::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string label(const FieldDescriptor& field) {
  std::string text = field.name();
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

bool is_time(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         (field.message_type()->full_name() == "google.protobuf.Timestamp" ||
          field.message_type()->full_name() == "google.protobuf.Duration");
}

std::string value_text(const Message& message, const FieldDescriptor& field) {
  const std::string text = scalar_text(message, field);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const std::string prefix = field.enum_type()->name() == "Health" || field.enum_type()->name() == "Quality"
                                   ? field.enum_type()->name() + "_"
                                   : "";
    return word(std::string_view(text).substr(prefix.size()));
  }
  return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING ? manifest::short_name(text) : text;
}

// The kind of member that is described; unspecified for everything that is none.
using member_kind = v1::MemberKind;

struct part_field {
  std::string_view field;
  std::string_view kinds;  // of parts that have such a thing, each between spaces
};
constexpr auto part_fields = std::to_array<part_field>({{"memory_gib", " gpu dimm drive "},
                                                        {"cores", " cpu "},
                                                        {"gbps", " nic dpu "},
                                                        {"pcie_generation", " gpu nic dpu drive "},
                                                        {"pcie_width", " gpu nic dpu drive "},
                                                        {"links_up", " gpu asic "}});

// Does the field say anything of such a thing at all? What does not apply is left out; what applies and is not known is
// "unknown". A kind that this release does not know keeps all its fields.
bool applies(const Message& message, const FieldDescriptor& field, member_kind kind) {
  const std::string& name = field.name();
  if (dynamic_cast<const v1::MemberStatus*>(&message) != nullptr && (name == "agent_connected" || name == "boot_id"))
    return kind != v1::SWITCH_TRAY && kind != v1::POWER_SHELF && kind != v1::RACK_CONTROLLER;
  if (dynamic_cast<const v1::MemberStatus*>(&message) != nullptr && name == "power") return kind != v1::RACK_CONTROLLER;
  if (const auto* part = dynamic_cast<const v1::Part*>(&message)) {
    const bool is_known = std::any_of(part_fields.begin(), part_fields.end(), [part](const part_field& one) {
      return one.kinds.find(" " + part->kind() + " ") != std::string_view::npos;
    });
    const auto found = std::find_if(part_fields.begin(), part_fields.end(),
                                    [&name](const part_field& one) { return one.field == name; });
    const bool bare = part->kind() == "psu" || part->kind() == "valve";  // have none of them
    return found == part_fields.end() || (!is_known && !bare) ||
           found->kinds.find(" " + part->kind() + " ") != std::string_view::npos;
  }
  if (const auto* failure = dynamic_cast<const v1::MetricFailure*>(&message)) return name != "gpu" || failure->has_gpu();
  // Nothing is asked of it: that is no ignorance.
  const bool is_wish = field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM && (name == "goal" || name == "wanted");
  return !is_wish || message.GetReflection()->GetEnumValue(message, &field) != 0;
}

void write_fields(const Message& message, member_kind kind, const std::string& indent, std::string& out);

// A list of messages as a table of those columns in which any row says something.
void write_table(const Message& message, const FieldDescriptor& field, member_kind kind, const std::string& indent,
                 std::string& out) {
  const auto* of = message.GetReflection();
  const auto* type = field.message_type();
  std::vector<row> rows(1);
  for (int i = 0; i < type->field_count(); ++i) {
    if (type->field(i)->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || is_time(*type->field(i))) {
      rows[0].push_back(label(*type->field(i)));
    }
  }
  for (int i = 0; i < of->FieldSize(message, &field); ++i) {
    const Message& element = of->GetRepeatedMessage(message, &field, i);
    row& line = rows.emplace_back();
    for (int j = 0; j < type->field_count(); ++j) {
      const FieldDescriptor& column = *type->field(j);
      if (column.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || is_time(column))
        line.push_back(applies(element, column, kind) ? value_text(element, column) : "");
    }
  }
  for (std::size_t column = rows[0].size(); column-- > 0;) {
    const bool silent = std::all_of(rows.begin() + 1, rows.end(), [column](const row& line) {
      return line[column].empty() || line[column] == "unknown";
    });
    if (silent && column > 0) {
      for (row& line : rows) line.erase(line.begin() + static_cast<std::ptrdiff_t>(column));
    }
  }
  std::string_view text;
  const std::string whole = aligned(rows);
  for (text = whole; !text.empty();) {
    const std::size_t end = text.find('\n');
    out += fmt::format("{}{}\n", indent, text.substr(0, end));
    text.remove_prefix(end + 1);
  }
}

// NamedReading has a message inside, which a table does not show.
template <class Status>
void write_readings(const Status& status, const std::string& indent, std::string& out) {
  std::vector<row> rows;
  for (const auto& named : status.readings()) {
    const auto& reading = named.reading();
    const std::string value =
        reading.has_value() ? fmt::format("{:.4g} {}", reading.value(), reading.unit()) : "unknown";
    rows.push_back({indent + named.name(), value, word(v1::Quality_Name(reading.quality()).substr(8)),
                    reading.source()});
  }
  out += aligned(rows);
}

void write_map(const Message& message, const FieldDescriptor& field, const std::string& indent,
               std::string& out) {
  std::vector<row> rows;
  const auto* of = message.GetReflection();
  for (int i = 0; i < of->FieldSize(message, &field); ++i) {
    const Message& entry = of->GetRepeatedMessage(message, &field, i);
    rows.push_back({indent + scalar_text(entry, *field.message_type()->map_key()),
                    scalar_text(entry, *field.message_type()->map_value())});
  }
  std::sort(rows.begin(), rows.end());
  out += aligned(rows);
}

void write_field(const Message& message, const FieldDescriptor& field, member_kind kind, const std::string& indent,
                 std::string& out) {
  if (!applies(message, field, kind)) return;
  const auto* of = message.GetReflection();
  const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !is_time(field);
  if (field.is_repeated() ? of->FieldSize(message, &field) == 0
                          : is_message && !of->HasField(message, &field))
    return;
  if (!is_message) {
    const std::string text = value_text(message, field);
    // A false or zero that has no presence says as little as an empty text.
    if (text.empty() || (!field.has_presence() && (text == "0" || text == "false"))) return;
    out += fmt::format("{}{:<{}} {}\n", indent, label(field), std::max<std::size_t>(26 - indent.size(), 1),
                       text);
    return;
  }
  out += fmt::format("{}{}\n", indent, label(field));
  const auto* status = dynamic_cast<const v1::RackStatus*>(&message);
  if (status != nullptr && field.name() == "readings") return write_readings(*status, indent + "  ", out);
  const auto* of_cdu = dynamic_cast<const v1::CduStatus*>(&message);
  if (of_cdu != nullptr && field.name() == "readings") return write_readings(*of_cdu, indent + "  ", out);
  if (field.is_map()) return write_map(message, field, indent + "  ", out);
  if (field.is_repeated()) return write_table(message, field, kind, indent + "  ", out);
  write_fields(of->GetMessage(message, &field), kind, indent + "  ", out);
}

void write_fields(const Message& message, member_kind kind, const std::string& indent, std::string& out) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    write_field(message, *message.GetDescriptor()->field(i), kind, indent, out);
  }
}

const v1::MemberStatus* member_status(const Message& item) {
  if (const auto* node = dynamic_cast<const v1::Node*>(&item)) return &node->status();
  if (const auto* shelf = dynamic_cast<const v1::Shelf*>(&item)) return &shelf->status();
  return nullptr;
}

const v1::MemberSpec* member_spec(const Message& item) {
  if (const auto* node = dynamic_cast<const v1::Node*>(&item)) return &node->spec();
  if (const auto* shelf = dynamic_cast<const v1::Shelf*>(&item)) return &shelf->spec();
  return nullptr;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// The fault's own words, with the names of this member in its commands.
std::string what_to_do(const core::fault_text& text, const std::string& name) {
  std::string out = fmt::format("{:<26} {}\n", "what to do", text.next_step);
  std::string commands(text.commands);
  replace_all(commands, "NODE", name);
  replace_all(commands, "RACK", name.substr(0, name.find('/')));
  for (std::string_view rest = commands; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    out += fmt::format("{:<26} {}\n", "", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

}  // namespace

std::string describe_text(const Message& item, wall_time now) {
  std::string out;
  const v1::MemberSpec* spec = member_spec(item);
  write_fields(item, spec == nullptr ? v1::MEMBER_KIND_UNSPECIFIED : spec->kind(), "", out);
  const v1::MemberStatus* status = member_status(item);
  if (status == nullptr) return out;
  if (status->has_step_entered_time()) {
    out += fmt::format("{:<26} {}\n", "in step since", age_text(status->step_entered_time(), true, now));
  }
  // A latch stands above every other failure: nothing goes on before a person has reset it.
  auto fault = core::fault_named(status->failure().fault());
  if (status->emergency_off()) fault = core::fault::POWER_LEAK_LATCHED;
  if (fault) out += what_to_do(core::text_of(*fault), item_name(item));
  return out;
}

namespace {

// Faults that say: what is seen is not what is declared. Others (a BMC that is silent, a step that is late) are no difference.
bool is_difference(std::string_view fault) {
  constexpr std::string_view families[] = {"IDENTITY_", "INVENTORY_", "FIRMWARE_", "CONFIG_", "NVLINK_", "SUITE_"};
  return std::any_of(std::begin(families), std::end(families),
                     [fault](std::string_view family) { return fault.starts_with(family); });
}

// What stopped the member and what stands against it, where no row shows it yet.
void add_standing(const v1::MemberStatus& status, const google::protobuf::RepeatedPtrField<v1::Condition>& conditions,
                  const std::string& name, std::vector<row>& rows) {
  const auto add = [&rows, &name](const std::string& what, const std::string& expected, const std::string& seen) {
    const bool shown = std::any_of(rows.begin(), rows.end(), [&expected, &seen](const row& line) {
      return line[2] == expected && line[3] == seen;
    });
    if (!shown) rows.push_back({name, what, expected, seen});
  };
  const v1::Failure& failure = status.failure();
  const bool carries = !failure.expected().empty() || !failure.seen().empty();
  if (carries) {
    add(failure.fault(), failure.expected().empty() ? "(nothing)" : failure.expected(),
        failure.seen().empty() ? "(nothing)" : failure.seen());
  } else if (is_difference(failure.fault())) {
    add(failure.fault(), "as declared", failure.message());
  }
  for (const v1::Condition& condition : conditions) {
    if (condition.health() == v1::HEALTH_GOOD || !is_difference(condition.type())) continue;
    add(condition.type(), "as declared", condition.health() == v1::HEALTH_BAD ? condition.message() : "unknown");
  }
}

const google::protobuf::RepeatedPtrField<v1::Condition>& conditions_of(const Message& item) {
  if (const auto* shelf = dynamic_cast<const v1::Shelf*>(&item)) return shelf->conditions();
  return dynamic_cast<const v1::Node&>(item).conditions();  // member_status() knew it
}

}  // namespace

std::vector<row> differences(const Message& item) {
  std::vector<row> rows;
  const v1::MemberStatus* status = member_status(item);
  const v1::MemberSpec* spec = member_spec(item);
  if (status == nullptr || spec == nullptr) return rows;
  const std::string name = item_name(item);
  const auto add = [&rows, &name](std::string what, const std::string& expected, bool known,
                                  const std::string& seen) {
    if (known && seen == expected) return;
    rows.push_back({name, std::move(what), expected, known ? seen : "unknown"});
  };
  const auto& identity = status->identity();
  if (!spec->serial().empty()) add("serial", spec->serial(), identity.has_serial(), identity.serial());
  if (identity.has_slot()) add("slot", spec->slot(), true, identity.slot());
  for (const auto& component : status->firmware()) {
    if (component.state() == v1::FirmwareComponent::NOT_REQUIRED) continue;
    add("firmware " + component.component(), component.wanted(), component.has_seen(), component.seen());
  }
  for (const auto& drift : status->drift())
    add(drift.attribute(), drift.expected(), drift.has_seen(), drift.seen());
  add_standing(*status, conditions_of(item), name, rows);
  return rows;
}

}  // namespace busbar::cli
