// CDUs: made anew each time, since what is read of them changes without a change of state. They are few.
#include <algorithm>

#include "daemon/busbard/rpc/convert_plant.hpp"
#include "daemon/busbard/rpc/views.hpp"

namespace busbar::rpc {
namespace {

view_ptr<v1::Cdu> show(const core::versioned<journal::Cdu>& held, const core::reading_board* board, const std::string& old) {
  v1::Cdu made = cdu_to_v1(*held.object, held.revision, board);
  if (!old.empty()) {
    made.mutable_status()->set_health(v1::HEALTH_UNKNOWN);
    v1::Condition& row = *made.add_conditions();
    row.set_type(std::string(may_be_old_condition));
    row.set_health(v1::HEALTH_UNKNOWN);
    row.set_message(old);
  }
  return make_view(std::move(made));
}

}  // namespace

view_ptr<v1::Cdu> views::find(const core::snapshot& state, const std::string& name, const v1::Cdu*) {
  const auto found = state.cdus->find(name);
  return found == state.cdus->end() ? nullptr : show(found->second, board_.get(), why_old());
}

// A plant is no parent of its CDUs in their names: any scope that is not a rack's shows them all.
std::vector<view_ptr<v1::Cdu>> views::all(const core::snapshot& state, const std::string& scope, const v1::Cdu*) {
  std::vector<view_ptr<v1::Cdu>> found;
  for (const auto& [name, held] : *state.cdus) {
    const auto& racks = held.object->spec().racks();
    const bool feeds = std::any_of(racks.begin(), racks.end(), [&scope](const auto& row) { return row.rack() == scope; });
    if (scope.empty() || scope == instance_ || scope == name || feeds) found.push_back(show(held, board_.get(), why_old()));
  }
  return found;
}

}  // namespace busbar::rpc
