#include "actors/devices/snmp/snmp_outlets.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "actors/devices/strict_json.hpp"

namespace busbar::devices::snmp {
namespace {

constexpr std::size_t most_outlets = 512;
constexpr double widest_digits = 9;

using outlets_callback = std::function<void(absl::StatusOr<std::vector<outlet_facts>>)>;

// One reading in progress: the columns of the table are walked one after another.
struct gathering {
  std::vector<std::pair<std::string, std::map<std::string, variable>>> columns;  // by OID; rows by index
  std::size_t at = 0;
  outlets_callback reply;
};

class snmp_outlets final : public outlet_bank, public std::enable_shared_from_this<snmp_outlets> {
 public:
  snmp_outlets(std::shared_ptr<agent> wire, dialect spoken, int pdu)
      : wire_(std::move(wire)), spoken_(std::move(spoken)), pdu_(pdu) {}

  void read(outlets_callback reply) override {
    const auto all = std::make_shared<gathering>();
    all->reply = std::move(reply);
    all->columns.emplace_back(spoken_.state_oid, std::map<std::string, variable>());
    for (const std::string& column : optional_columns())
      all->columns.emplace_back(column, std::map<std::string, variable>());
    next_column(all);
  }

  void ask(const std::string& outlet, outlet_act act, std::function<void(absl::Status)> reply) override {
    const auto number = parse_outlet(outlet);
    if (!number.has_value()) {
      reply(absl::InvalidArgumentError(fmt::format("'{}' is no outlet of a PDU that numbers them", outlet)));
      return;
    }
    const std::int64_t code = act == outlet_act::on ? spoken_.control_on : spoken_.control_off;
    wire_->set(oid_of(spoken_, spoken_.control_oid, pdu_, *number), code,
               [reply = std::move(reply)](const absl::StatusOr<std::vector<variable>>& got) {
                 reply(got.status());
               });
  }

 private:
  static std::optional<int> parse_outlet(const std::string& text) {
    const auto number = redfish::parse_number(text);
    if (!number.has_value() || *number < 1 || *number > most_outlets || *number != std::floor(*number))
      return std::nullopt;
    return static_cast<int>(*number);
  }

  std::vector<std::string> optional_columns() const {
    std::vector<std::string> columns;
    if (!spoken_.name_oid.empty()) columns.push_back(spoken_.name_oid);
    for (const auto* each : {&spoken_.current_a, &spoken_.power_w}) {
      if (!each->has_value()) continue;
      columns.push_back((*each)->oid);
      if (!(*each)->digits_oid.empty()) columns.push_back((*each)->digits_oid);
    }
    return columns;
  }

  void next_column(const std::shared_ptr<gathering>& all) {
    if (all->at == all->columns.size()) {
      finish(*all);
      return;
    }
    wire_->walk(all->columns[all->at].first, most_outlets,
                [self = shared_from_this(), all](absl::StatusOr<std::vector<variable>> got) {
                  auto& [column, rows] = all->columns[all->at];
                  // The state column says what there is; the others only add to it.
                  if (!got.ok() && all->at == 0) {
                    all->reply(got.status());
                    return;
                  }
                  if (got.ok()) {
                    for (variable& one : *got)
                      rows.emplace(one.oid.substr(column.size() + 1), std::move(one));
                  }
                  ++all->at;
                  self->next_column(all);
                });
  }

  static const variable* find(const gathering& all, const std::string& column, const std::string& index) {
    for (const auto& [oid, rows] : all.columns) {
      if (oid != column) continue;
      const auto found = rows.find(index);
      if (found != rows.end()) return &found->second;
    }
    return nullptr;
  }

  static std::optional<double> number_of(const gathering& all, const std::optional<measured>& what,
                                         const std::string& index) {
    if (!what.has_value()) return std::nullopt;
    const variable* const value = find(all, what->oid, index);
    if (value == nullptr || !value->number().has_value()) return std::nullopt;
    double scale = what->scale;
    if (!what->digits_oid.empty()) {
      // Without its digits the number could be a thousand times what it is.
      const variable* const digits = find(all, what->digits_oid, index);
      const auto count = digits == nullptr ? std::nullopt : digits->number();
      if (!count.has_value() || *count < 0 || static_cast<double>(*count) > widest_digits)
        return std::nullopt;
      scale *= std::pow(10.0, -static_cast<double>(*count));
    }
    return static_cast<double>(*value->number()) * scale;
  }

  void finish(const gathering& all) const {
    std::vector<outlet_facts> outlets;
    for (int number = 1; number <= static_cast<int>(most_outlets); ++number) {
      const std::string index = oid_of(spoken_, "", pdu_, number).substr(1);
      const variable* const state = find(all, spoken_.state_oid, index);
      if (state == nullptr) continue;
      outlet_facts one;
      one.id = std::to_string(number);
      if (const auto code = state->number(); code.has_value()) {
        one.state = state_of(spoken_, *code);
        if (one.state == outlet_state::unknown) one.raw_state = std::to_string(*code);
      } else {
        one.raw_state = state->text().value_or("nothing");
      }
      if (const variable* name = find(all, spoken_.name_oid, index); name != nullptr)
        one.name = name->text().value_or("");
      one.current_a = number_of(all, spoken_.current_a, index);
      one.power_w = number_of(all, spoken_.power_w, index);
      outlets.push_back(std::move(one));
    }
    if (outlets.empty()) {
      all.reply(absl::NotFoundError(fmt::format("no outlet under {}: the PDU speaks another dialect than {}",
                                                spoken_.state_oid, spoken_.name)));
      return;
    }
    all.reply(std::move(outlets));
  }

  std::shared_ptr<agent> wire_;
  dialect spoken_;
  int pdu_;
};

}  // namespace

std::shared_ptr<outlet_bank> make_snmp_outlets(std::shared_ptr<agent> wire, dialect spoken, int pdu) {
  return std::make_shared<snmp_outlets>(std::move(wire), std::move(spoken), pdu);
}

}  // namespace busbar::devices::snmp
