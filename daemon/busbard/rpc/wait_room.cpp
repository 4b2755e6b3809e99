#include "daemon/busbard/rpc/wait_room.hpp"

#include <utility>

#include "actors/core/errors.hpp"

namespace busbar::rpc {
namespace {

constexpr std::size_t most_tasks = 4096;
constexpr std::size_t taken_at_once = 256;

}  // namespace

wait_room::wait_room(std::shared_ptr<core::snapshot_hub> hub, views& shown)
    : hub_(std::move(hub)), shown_(shown), worker_(std::make_shared<worker>(most_tasks, [this] { return check(); })) {}

wait_room::~wait_room() {
  worker_->post_always([this] { changes_.reset(); });
  worker_->stop();
}

void wait_room::listen() {
  if (changes_ != nullptr) return;
  core::watch_filter filter;
  filter.kinds = {core::object_kind::operation};
  filter.events = false;
  const std::shared_ptr<worker> thread = worker_;
  auto made = hub_->subscribe(journal::Position(), std::move(filter), core::watch_options(),
                              [this, thread] { thread->post_always([this] { woken(); }); });
  // Without it the tick finds the end of an operation, a quarter of a second later.
  if (made.ok()) changes_ = *std::move(made);
  woken();
}

void wait_room::woken() {
  while (changes_ != nullptr) {
    const auto items = changes_->take(taken_at_once);
    if (!items.ok()) changes_.reset();
    if (!items.ok() || items->empty()) break;
  }
  check();
}

void wait_room::wait(std::string id, std::chrono::steady_clock::time_point until, std::shared_ptr<pending_call> call,
                     v1::Operation* response) {
  // A refused task drops the call, which answers UNAVAILABLE by itself.
  worker_->post([this, id = std::move(id), until, call = std::move(call), response] {
    if (ending_) return call->fail(absl::UnavailableError("the daemon is stopping; wait again"));
    waiting_.push_back({id, until, call, response});
    listen();
    check();
  });
}

void wait_room::end_all() {
  worker_->post_always([this] {
    ending_ = true;
    for (const waiter& one : waiting_) one.call->fail(absl::UnavailableError("the daemon is stopping; wait again"));
    waiting_.clear();
    changes_.reset();
  });
}

bool wait_room::answered(const waiter& one, const core::snapshot& state, std::chrono::steady_clock::time_point now) {
  if (one.call->context().IsCancelled()) {
    one.call->fail(absl::CancelledError("the client went away"));
    return true;
  }
  const auto shown = shown_.find(state, one.id, static_cast<const v1::Operation*>(nullptr));
  if (shown == nullptr) {
    one.call->fail(core::make_fault(core::fault::UNKNOWN_TARGET, one.id + " is not held any more"));
    return true;
  }
  if (!shown->message->done() && now < one.until) return false;
  if (one.call->claim()) {
    *one.response = *shown->message;
    one.call->end(absl::OkStatus());
  }
  return true;
}

bool wait_room::check() {
  const auto state = hub_->read();
  const auto now = std::chrono::steady_clock::now();
  waiting_.remove_if([this, &state, now](const waiter& one) { return answered(one, *state, now); });
  if (waiting_.empty()) changes_.reset();
  return !waiting_.empty();
}

}  // namespace busbar::rpc
