// Valves and PDUs: made anew each time, since what is read of them changes without a change of state. They are few.
#include "daemon/busbard/rpc/convert_equipment.hpp"
#include "daemon/busbard/rpc/views.hpp"

namespace busbar::rpc {
namespace {

// As with racks and members: while the store takes no writes, nothing of it is known to be so now.
template <class Message>
void put_age(Message& shown, const std::string& why) {
  v1::Condition& row = *shown.add_conditions();
  row.set_type(std::string(may_be_old_condition));
  row.set_health(v1::HEALTH_UNKNOWN);
  row.set_message(why);
}

view_ptr<v1::Valve> show(const core::versioned<journal::Valve>& held, const core::reading_board* board, const std::string& old) {
  v1::Valve made = valve_to_v1(*held.object, held.revision, board);
  if (!old.empty()) {
    made.mutable_status()->set_health(v1::HEALTH_UNKNOWN);
    put_age(made, old);
  }
  return make_view(std::move(made));
}

view_ptr<v1::Pdu> show(const core::versioned<journal::Pdu>& held, const core::reading_board* board, const std::string& old) {
  v1::Pdu made = pdu_to_v1(*held.object, held.revision, board);
  if (!old.empty()) {
    made.set_health(v1::HEALTH_UNKNOWN);
    for (v1::Outlet& outlet : *made.mutable_outlets()) outlet.set_state(v1::Outlet::UNKNOWN);
    put_age(made, old);
  }
  return make_view(std::move(made));
}

template <class Message, class Held>
view_ptr<Message> find_in(const core::object_map<Held>& objects, const std::string& name, const core::reading_board* board,
                          const std::string& old) {
  const auto found = objects.find(name);
  return found == objects.end() ? nullptr : show(found->second, board, old);
}

template <class Message, class Held>
std::vector<view_ptr<Message>> all_in(const core::object_map<Held>& objects, const std::string& scope,
                                      const core::reading_board* board, const std::string& old) {
  std::vector<view_ptr<Message>> found;
  for (const auto& [name, held] : objects) {
    if (is_within(name, scope)) found.push_back(show(held, board, old));
  }
  return found;
}

}  // namespace

view_ptr<v1::Valve> views::find(const core::snapshot& state, const std::string& name, const v1::Valve*) {
  return find_in<v1::Valve>(*state.valves, name, board_.get(), why_old());
}

view_ptr<v1::Pdu> views::find(const core::snapshot& state, const std::string& name, const v1::Pdu*) {
  return find_in<v1::Pdu>(*state.pdus, name, board_.get(), why_old());
}

std::vector<view_ptr<v1::Valve>> views::all(const core::snapshot& state, const std::string& scope, const v1::Valve*) {
  return all_in<v1::Valve>(*state.valves, scope, board_.get(), why_old());
}

std::vector<view_ptr<v1::Pdu>> views::all(const core::snapshot& state, const std::string& scope, const v1::Pdu*) {
  return all_in<v1::Pdu>(*state.pdus, scope, board_.get(), why_old());
}

}  // namespace busbar::rpc
