#include "daemon/busbard/rpc/watch_stream.hpp"

#include <fmt/format.h>

#include <utility>

#include "daemon/busbard/rpc/convert_equipment.hpp"
#include "daemon/busbard/rpc/convert_plant.hpp"
#include "daemon/busbard/rpc/reply.hpp"

namespace busbar::rpc {

watch_stream::watch_stream(watch_room& room, grpc::CallbackServerContext* context, const v1::WatchRequest& request, ticket place)
    : room_(room), context_(context), request_(request), place_(std::move(place)), last_write_(std::chrono::steady_clock::now()) {}

void watch_stream::post(void (watch_stream::*step)()) {
  auto keep = shared_from_this();
  room_.pump_->post_always([keep, step] { (keep.get()->*step)(); });
}

void watch_stream::OnWriteDone(bool ok) { post(ok ? &watch_stream::written : &watch_stream::write_failed); }

void watch_stream::OnCancel() { post(&watch_stream::write_failed); }

void watch_stream::OnDone() {
  post(&watch_stream::gone);
  const std::shared_ptr<watch_stream> last = std::move(self_);
}

void watch_stream::gone() {
  subscription_.reset();
  room_.streams_.erase(shared_from_this());
  room_.count_.fetch_sub(1);
}

void watch_stream::end(const absl::Status& status) {
  if (finished_) return;
  finished_ = true;
  subscription_.reset();
  queue_.clear();
  place_ = ticket();
  Finish(to_grpc(status, request_.parent(), *context_));
}

void watch_stream::write_failed() {
  writing_ = false;
  end(absl::CancelledError("the client went away"));
}

void watch_stream::written() {
  writing_ = false;
  feed();
}

watch_stream::wanted_kinds watch_stream::wanted_kinds::none() {
  wanted_kinds nothing;
  nothing.racks = nothing.nodes = nothing.shelves = nothing.controllers = nothing.valves = nothing.pdus = nothing.cdus = false;
  nothing.endpoints = nothing.operations = nothing.events = false;
  return nothing;
}

absl::Status watch_stream::read_request() {
  scope_ = short_parent(request_.parent());
  if (request_.kinds().empty()) return absl::OkStatus();
  kinds_ = wanted_kinds::none();
  for (const std::string& kind : request_.kinds()) {
    if (kind == "racks") kinds_.racks = true;
    else if (kind == "nodes") kinds_.nodes = true;
    else if (kind == "shelves") kinds_.shelves = true;
    else if (kind == "controllers") kinds_.controllers = true;
    else if (kind == "valves") kinds_.valves = true;
    else if (kind == "pdus") kinds_.pdus = true;
    else if (kind == "cdus") kinds_.cdus = true;
    else if (kind == "endpoints") kinds_.endpoints = true;
    else if (kind == "operations") kinds_.operations = true;
    else if (kind == "events") kinds_.events = true;
    else return absl::InvalidArgumentError(
        fmt::format("no kind {}: racks, nodes, shelves, controllers, valves, pdus, cdus, endpoints, operations, events", kind));
  }
  return absl::OkStatus();
}

absl::Status watch_stream::subscribe(const journal::Position& from) {
  core::watch_filter filter;
  filter.events = kinds_.events;
  filter.objects = kinds_.racks || kinds_.nodes || kinds_.shelves || kinds_.controllers || kinds_.valves || kinds_.pdus || kinds_.cdus || kinds_.endpoints || kinds_.operations;
  core::watch_options options;
  options.queue_limit = room_.limits_.queue;
  const std::weak_ptr<watch_stream> weak = weak_from_this();
  const std::shared_ptr<worker> pump = room_.pump_;
  auto made = room_.hub_->subscribe(from, std::move(filter), options, [weak, pump] {
    pump->post_always([weak] {
      if (const auto stream = weak.lock(); stream != nullptr) stream->feed();
    });
  });
  if (!made.ok()) return made.status();
  subscription_ = *std::move(made);
  return absl::OkStatus();
}

void watch_stream::begin() {
  if (finished_) return;
  absl::Status status = read_request();
  if (status.ok() && request_.has_position()) {
    journal::Position from;
    from.set_journal_id(request_.position().journal_id());
    from.set_revision(request_.position().revision());
    if (from.journal_id().empty()) {
      status = absl::InvalidArgumentError("a position has a journal_id; leave the position out to begin with the present state");
    } else {
      status = subscribe(from);
    }
  } else if (status.ok()) {
    const std::shared_ptr<const core::snapshot> state = room_.hub_->read();
    status = subscribe(state->position);
    if (status.ok()) push_present(*state);
  }
  if (!status.ok()) return end(status);
  feed();
}

void watch_stream::feed() {
  if (finished_ || writing_) return;
  while (queue_.empty()) {
    if (subscription_ == nullptr) return;
    auto taken = subscription_->take(room_.limits_.batch);
    if (!taken.ok()) return end(taken.status());
    if (taken->empty()) return;
    for (const core::watch_item& item : *taken) push_item(item);
  }
  in_flight_ = std::move(queue_.front());
  queue_.pop_front();
  writing_ = true;
  last_write_ = std::chrono::steady_clock::now();
  StartWrite(&in_flight_);
}

void watch_stream::push(v1::WatchResponse&& response, const journal::Position& at) {
  *response.mutable_position() = position_to_v1(at);
  queue_.push_back(std::move(response));
}

void watch_stream::push_bookmark(const journal::Position& at, bool initial_complete) {
  v1::WatchResponse response;
  response.mutable_bookmark()->set_initial_complete(initial_complete);
  push(std::move(response), at);
}

void watch_stream::push_objects(const core::snapshot& state, bool initial) {
  const auto push_all = [this, &state, initial](const auto& found, auto* (v1::WatchResponse::*field)()) {
    for (const auto& each : found) {
      v1::WatchResponse response;
      response.set_initial(initial);
      *(response.*field)() = *each->message;
      push(std::move(response), state.position);
    }
  };
  views& shown = room_.shown_;
  if (kinds_.racks) push_all(shown.all(state, scope_, static_cast<const v1::Rack*>(nullptr)), &v1::WatchResponse::mutable_rack);
  if (kinds_.nodes) push_all(shown.all(state, scope_, static_cast<const v1::Node*>(nullptr)), &v1::WatchResponse::mutable_node);
  if (kinds_.shelves) {
    push_all(shown.all(state, scope_, static_cast<const v1::Shelf*>(nullptr)), &v1::WatchResponse::mutable_shelf);
  }
  if (kinds_.controllers) {
    push_all(shown.all(state, scope_, static_cast<const controller*>(nullptr)), &v1::WatchResponse::mutable_controller);
  }
  if (kinds_.valves) {
    push_all(shown.all(state, scope_, static_cast<const v1::Valve*>(nullptr)), &v1::WatchResponse::mutable_valve);
  }
  if (kinds_.cdus) push_all(shown.all(state, scope_, static_cast<const v1::Cdu*>(nullptr)), &v1::WatchResponse::mutable_cdu);
  if (kinds_.pdus) push_all(shown.all(state, scope_, static_cast<const v1::Pdu*>(nullptr)), &v1::WatchResponse::mutable_pdu);
}

void watch_stream::push_present(const core::snapshot& state) {
  was_old_ = !room_.shown_.why_old().empty();
  push_objects(state, true);
  const auto push_all = [this, &state](const auto& found, auto* (v1::WatchResponse::*field)()) {
    for (const auto& each : found) {
      v1::WatchResponse response;
      response.set_initial(true);
      *(response.*field)() = *each->message;
      push(std::move(response), state.position);
    }
  };
  views& shown = room_.shown_;
  if (kinds_.endpoints) {
    push_all(shown.all(state, scope_, static_cast<const v1::Endpoint*>(nullptr)), &v1::WatchResponse::mutable_endpoint);
  }
  if (kinds_.operations) {
    push_all(shown.all(state, scope_, static_cast<const v1::Operation*>(nullptr)), &v1::WatchResponse::mutable_operation);
  }
  push_bookmark(state.position, true);
}

void watch_stream::push_item(const core::watch_item& item) {
  v1::WatchResponse response;
  switch (item.what) {
    case core::watch_item::type::event:
      if (!kinds_.events || !in_scope(item.event->object())) return;
      *response.mutable_event() = event_to_v1(*item.event, room_.shown_.instance());
      break;
    case core::watch_item::type::changed:
      if (!push_changed(item, response)) return;
      break;
    case core::watch_item::type::erased:
      response.set_deleted(true);
      if (!push_erased(item, response)) return;
      break;
    case core::watch_item::type::bookmark: response.mutable_bookmark(); break;
  }
  push(std::move(response), item.position);
}

bool watch_stream::push_changed(const core::watch_item& item, v1::WatchResponse& response) {
  const std::uint64_t revision = item.position.revision();
  if (!item.object.has_value()) return false;
  if (const auto* node = std::get_if<std::shared_ptr<const journal::Node>>(&*item.object)) {
    const bool shelf = is_shelf(**node), of_valves = is_controller(**node);
    const bool wanted = shelf ? kinds_.shelves : of_valves ? kinds_.controllers : kinds_.nodes;
    if (!in_scope(item.name) || !wanted) return false;
    if (shelf) *response.mutable_shelf() = shelf_to_v1(**node, revision);
    else if (of_valves) *response.mutable_controller() = shelf_to_v1(**node, revision);
    else *response.mutable_node() = node_to_v1(**node, revision);
    return true;
  }
  if (const auto* rack = std::get_if<std::shared_ptr<const journal::Rack>>(&*item.object)) {
    if (!in_scope(item.name) || !kinds_.racks) return false;
    // The counts of its members are those of now: they are no part of the rack's own record.
    const auto shown = room_.shown_.find(*room_.hub_->read(), item.name, static_cast<const v1::Rack*>(nullptr));
    *response.mutable_rack() = shown != nullptr && shown->message->revision() == revision ? *shown->message
                                                                                         : rack_to_v1(**rack, {}, revision);
    return true;
  }
  if (const auto* valve = std::get_if<std::shared_ptr<const journal::Valve>>(&*item.object)) {
    if (!in_scope(item.name) || !kinds_.valves) return false;
    *response.mutable_valve() = valve_to_v1(**valve, revision, room_.shown_.board());
    return true;
  }
  if (const auto* cdu = std::get_if<std::shared_ptr<const journal::Cdu>>(&*item.object)) {
    if (!in_scope(item.name) || !kinds_.cdus) return false;
    *response.mutable_cdu() = cdu_to_v1(**cdu, revision, room_.shown_.board());
    return true;
  }
  if (const auto* pdu = std::get_if<std::shared_ptr<const journal::Pdu>>(&*item.object)) {
    if (!in_scope(item.name) || !kinds_.pdus) return false;
    *response.mutable_pdu() = pdu_to_v1(**pdu, revision, room_.shown_.board());
    return true;
  }
  if (const auto* endpoint = std::get_if<std::shared_ptr<const journal::Endpoint>>(&*item.object)) {
    if (!in_scope(item.name) || !kinds_.endpoints) return false;
    *response.mutable_endpoint() = endpoint_to_v1(**endpoint, revision);
    return true;
  }
  if (const auto* operation = std::get_if<std::shared_ptr<const journal::Operation>>(&*item.object)) {
    const std::string& instance = room_.shown_.instance();
    if (!kinds_.operations || !(scope_ == instance || in_scope((*operation)->target()))) return false;
    *response.mutable_operation() = operation_to_v1(**operation, instance, revision);
    return true;
  }
  return false;  // records are nobody's resource
}

bool watch_stream::push_erased(const core::watch_item& item, v1::WatchResponse& response) {
  const std::string name = public_name(item.name, room_.shown_.instance());
  switch (item.kind) {
    case core::object_kind::node:
      if (!in_scope(item.name)) return false;
      if (name.find("/shelves/") != std::string::npos) {
        if (!kinds_.shelves) return false;
        response.mutable_shelf()->set_name(name);
      } else if (name.find("/controllers/") != std::string::npos) {
        if (!kinds_.controllers) return false;
        response.mutable_controller()->set_name(name);
      } else {
        if (!kinds_.nodes) return false;
        response.mutable_node()->set_name(name);
      }
      return true;
    case core::object_kind::rack:
      if (!kinds_.racks || !in_scope(item.name)) return false;
      response.mutable_rack()->set_name(name);
      return true;
    case core::object_kind::endpoint:
      if (!kinds_.endpoints || !in_scope(item.name)) return false;
      response.mutable_endpoint()->set_name(name);
      return true;
    case core::object_kind::operation:
      if (!kinds_.operations || !(scope_.empty() || scope_ == room_.shown_.instance())) return false;
      response.mutable_operation()->set_name(name);
      return true;
    case core::object_kind::valve:
      if (!kinds_.valves || !in_scope(item.name)) return false;
      response.mutable_valve()->set_name(name);
      return true;
    case core::object_kind::cdu:
      if (!kinds_.cdus || !in_scope(item.name)) return false;
      response.mutable_cdu()->set_name(name);
      return true;
    case core::object_kind::pdu:
      if (!kinds_.pdus || !in_scope(item.name)) return false;
      response.mutable_pdu()->set_name(name);
      return true;
    case core::object_kind::record: break;
  }
  return false;
}

// That what is shown may be old, or is so no more, is no change of any object: they are all shown anew.
void watch_stream::show_age() {
  if (finished_ || subscription_ == nullptr || !queue_.empty()) return;
  const bool is_old = !room_.shown_.why_old().empty();
  const std::shared_ptr<const core::snapshot> state = room_.hub_->read();
  if (is_old == was_old_ || subscription_->position().revision() != state->position.revision()) return;
  was_old_ = is_old;
  push_objects(*state, false);
  feed();
}

void watch_stream::bookmark_at_rest(std::chrono::steady_clock::time_point now) {
  if (!request_.bookmarks() || finished_ || writing_ || subscription_ == nullptr || !queue_.empty()) return;
  if (now - last_write_ < room_.limits_.bookmark_interval) return;
  push_bookmark(subscription_->position(), false);
  feed();
}

}  // namespace busbar::rpc
