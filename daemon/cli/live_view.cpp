#include "daemon/cli/live_view.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <utility>

#include "actors/manifest/names.hpp"
#include "daemon/cli/host_list.hpp"

namespace busbar::cli {
namespace {

using manifest::short_name;

std::string step_word(const v1::MemberStatus& status) {
  if (status.emergency_off()) return "EMERGENCY OFF";
  const std::string step = word(v1::NodeStep::Value_Name(status.step()));
  return status.has_failure() ? step + " FAILED" : step;
}

// What members must share to stand in one row.
struct fold_key {
  std::string kind;
  std::string step;
  std::string why;
  auto operator<=>(const fold_key&) const = default;
};

bool is_finished(const v1::MemberStatus& status) {
  return status.step() == v1::NodeStep::PRODUCTION;
}

}  // namespace

void live_view::apply(const v1::WatchResponse& change) {
  if (change.has_rack()) {
    const v1::Rack& rack = change.rack();
    if (change.deleted()) {
      racks_.erase(rack.name());
      return;
    }
    racks_[rack.name()] = rack;
    const auto& status = rack.status();
    note(rack.name(), short_name(rack.name()),
         status.state().empty() ? word(v1::RackStep::Value_Name(status.step())) : status.state(),
         reason_text(status.failure(), status.has_failure(), status.waits_for()));
  } else if (change.has_node() || change.has_shelf()) {
    const bool is_node = change.has_node();
    const std::string& name = is_node ? change.node().name() : change.shelf().name();
    const auto& status = is_node ? change.node().status() : change.shelf().status();
    if (change.deleted()) {
      members_.erase(name);
      return;
    }
    members_[name] = {short_name(name), is_node ? change.node().spec() : change.shelf().spec(), status};
    note(name, short_name(name), step_word(status),
         reason_text(status.failure(), status.has_failure(), status.waits_for()));
  } else if (change.has_operation()) {
    const v1::Operation& operation = change.operation();
    operations_[operation.name()] = operation;
    note(operation.name(), short_name(operation.name()),
         fmt::format("{} {} {}", operation.verb(), short_name(operation.target()),
                     word(v1::Operation::State_Name(operation.state()))),
         operation.error().fault());
  }
}

void live_view::note(const std::string& key, const std::string& name, const std::string& state,
                     const std::string& why) {
  std::string line = fmt::format("{} {}", name, state);
  if (!why.empty()) line += fmt::format(" ({})", why);
  std::string& last = noted_[key];
  if (last == line) return;
  last = line;
  changes_.push_back(std::move(line));
}

std::vector<std::string> live_view::take_changes() {
  return std::exchange(changes_, {});
}

const v1::Operation* live_view::operation(const std::string& name) const {
  const auto found = operations_.find(name);
  return found == operations_.end() ? nullptr : &found->second;
}

std::string live_view::rack_line(const v1::Rack& rack, wall_time now) const {
  const auto& status = rack.status();
  std::size_t declared = 0;
  std::size_t finished = 0;
  std::size_t failed = 0;
  for (const auto& [name, one] : members_) {
    if (!name.starts_with(rack.name() + "/")) continue;
    ++declared;
    finished += is_finished(one.status) ? 1U : 0U;
    failed += one.status.has_failure() ? 1U : 0U;
  }
  std::string line =
      fmt::format("{}  {}", short_name(rack.name()), status.state().empty() ? "unknown" : status.state());
  const std::string age = age_text(status.step_entered_time(), status.has_step_entered_time(), now);
  if (!age.empty()) line += " for " + age;
  line += fmt::format("  members {}/{}", finished, declared);
  if (failed > 0) line += fmt::format(", {} failed", failed);
  const std::string why = reason_text(status.failure(), status.has_failure(), status.waits_for());
  return why.empty() ? line : line + "  waits for " + why;
}

std::vector<row> live_view::member_rows(const std::string& rack, wall_time now, bool folded) const {
  std::map<fold_key, std::vector<const member*>> groups;
  std::vector<std::pair<fold_key, std::vector<const member*>>> rows;
  for (const auto& [name, one] : members_) {
    if (!name.starts_with(rack + "/")) continue;
    const auto& status = one.status;
    fold_key key{word(v1::MemberKind_Name(one.spec.kind())), step_word(status),
                 reason_text(status.failure(), status.has_failure(), status.waits_for())};
    if (folded) {
      groups[key].push_back(&one);
    } else {
      rows.emplace_back(std::move(key), std::vector<const member*>{&one});
    }
  }
  rows.insert(rows.end(), groups.begin(), groups.end());
  std::vector<row> lines;
  for (const auto& [key, same] : rows) {
    std::vector<std::string> names;
    const member* oldest = same.front();
    for (const member* each : same) {
      names.push_back(each->name);
      using google::protobuf::util::TimeUtil;
      if (TimeUtil::TimestampToNanoseconds(each->status.step_entered_time()) <
          TimeUtil::TimestampToNanoseconds(oldest->status.step_entered_time())) {
        oldest = each;
      }
    }
    lines.push_back(
        {"  " + fold_host_list(names), key.step,
         age_text(oldest->status.step_entered_time(), oldest->status.has_step_entered_time(), now), key.why});
  }
  return lines;
}

std::vector<std::string> live_view::lines(wall_time now, std::size_t most_rows, std::size_t columns) const {
  std::vector<std::string> out;
  const bool folded = racks_.size() + members_.size() + 1 > most_rows;
  for (const auto& [name, rack] : racks_) {
    out.push_back(rack_line(rack, now));
    const std::string text = aligned(member_rows(name, now, folded));
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      out.emplace_back(rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
  }
  if (out.size() > most_rows && most_rows > 0) {
    const std::size_t hidden = out.size() - most_rows + 1;
    out.resize(most_rows - 1);
    out.push_back(fmt::format("  ... and {} more rows", hidden));
  }
  for (std::string& line : out) {
    if (line.size() > columns) line.resize(columns);
  }
  return out;
}

}  // namespace busbar::cli
