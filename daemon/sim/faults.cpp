#include "daemon/sim/faults.hpp"

#include <absl/status/status.h>

#include <algorithm>
#include <charconv>

namespace busbar::sim {

namespace {

bool in_force(const fault& each, instant now) {
  return now >= each.from && (!each.until || now < *each.until);
}

}  // namespace

fault_place place_of(const std::string& target) {
  std::size_t end = target.find('/');
  if (target.rfind("cdu", 0) != 0 && end != std::string::npos) {
    end = target.find('/', end + 1);
  }
  if (end == std::string::npos) {
    return {target, ""};
  }
  return {target.substr(0, end), target.substr(end + 1)};
}

char kind_letter(const std::string& member) {
  if (member.rfind("cdu", 0) == 0) {
    return 'u';
  }
  const std::size_t slash = member.find('/');
  if (slash == std::string::npos || slash + 1 >= member.size()) {
    return '?';
  }
  return member[slash + 1] == 'u' ? 'o' : member[slash + 1];  // a PDU stands in a rack as rNN/uNN
}

int number_of_rack(const std::string& member) {
  int number = 0;
  if (member.size() > 1 && member.front() == 'r') {
    std::from_chars(member.data() + 1, member.data() + member.size(), number);
  }
  return number;
}

const std::vector<fault_text>& fault_table() {
  static const std::vector<fault_text> table = {
#define BUSBAR_SIM_FAULT(name, targets, part, severity, meaning) \
  {fault_kind::name, #name, targets, fault_part::part, severity, meaning},
#include "daemon/sim/faults.def"
#undef BUSBAR_SIM_FAULT
  };
  return table;
}

const fault_text& text_of(fault_kind kind) {
  return fault_table()[static_cast<std::size_t>(kind)];
}

const fault_text* fault_named(std::string_view name) {
  const auto& table = fault_table();
  const auto found =
      std::find_if(table.begin(), table.end(), [name](const fault_text& each) { return each.name == name; });
  return found == table.end() ? nullptr : &*found;
}

absl::StatusOr<std::uint64_t> fault_book::add(const fault_request& request, instant now) {
  const fault_text* const text = fault_named(request.kind);
  if (text == nullptr) {
    return absl::InvalidArgumentError("no fault of kind " + request.kind);
  }
  auto [member, part] = place_of(request.target);
  fault added;
  added.id = ++last_id_;
  added.kind = text->kind;
  added.member = std::move(member);
  added.part = std::move(part);
  added.severity = request.severity.value_or(text->severity);
  added.value = request.value;
  added.from = now + request.delay;
  if (request.duration) {
    added.until = added.from + *request.duration;
  }
  faults_.push_back(std::move(added));
  return last_id_;
}

std::size_t fault_book::clear(std::string_view kind, std::string_view target) {
  const std::size_t before = faults_.size();
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(kind.data(), kind.data() + kind.size(), id);
  if (error == std::errc() && end == kind.data() + kind.size()) {
    std::erase_if(faults_, [id](const fault& each) { return each.id == id; });
    return before - faults_.size();
  }
  std::erase_if(faults_, [kind, target](const fault& each) {
    const std::string whole = each.part.empty() ? each.member : each.member + "/" + each.part;
    return (kind.empty() || text_of(each.kind).name == kind) &&
           (target.empty() || target == each.member || target == whole);
  });
  return before - faults_.size();
}

const fault* fault_book::find(fault_kind kind, std::string_view member, instant now) const {
  for (const fault& each : faults_) {
    if (each.kind == kind && each.member == member && in_force(each, now)) {
      return &each;
    }
  }
  return nullptr;
}

const fault* fault_book::find_part(fault_kind kind, std::string_view member, std::string_view part,
                                   std::string_view first, instant now) const {
  for (const fault& each : faults_) {
    const std::string_view named = each.part.empty() ? first : std::string_view(each.part);
    if (each.kind == kind && each.member == member && named == part && in_force(each, now)) {
      return &each;
    }
  }
  return nullptr;
}

std::optional<instant> fault_book::next_change(instant now) const {
  std::optional<instant> next;
  const auto consider = [&next, now](instant when) {
    if (when > now && (!next || when < *next)) {
      next = when;
    }
  };
  for (const fault& each : faults_) {
    consider(each.from);
    if (each.until) {
      consider(*each.until);
    }
  }
  return next;
}

}  // namespace busbar::sim
