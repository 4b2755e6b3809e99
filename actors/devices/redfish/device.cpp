#include "actors/devices/redfish/device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/core/errors.hpp"

namespace busbar::devices::redfish {

using core::fault;
using core::make_fault;

device::device(std::string address, std::shared_ptr<http_transport> transport,
               std::shared_ptr<scheduler> loop, device_options options)
    : address_(std::move(address)),
      transport_(std::move(transport)),
      loop_(std::move(loop)),
      options_(options),
      concurrency_(options.in_flight_limit) {}

device::~device() {
  // Reached only when nothing waits for an answer, or when the loop is gone and close() never ran: answer
  // what is left.
  for (auto& [id, item] : in_flight_) {
    if (item->reply) item->reply(response{closed_fault(), 0, {}, {}});
  }
  for (auto& queue : queues_) {
    for (auto& item : queue) {
      if (item->reply) item->reply(response{closed_fault(), 0, {}, {}});
    }
  }
}

// Answers are given from one place, never from inside submit or send: a long procedure over a transport that
// answers inline would otherwise nest as deep as it is long.
void device::run(std::function<void()> work) {
  ready_.push_back(std::move(work));
  if (draining_) return;
  draining_ = true;
  const auto keep = shared_from_this();
  while (!ready_.empty()) {
    const auto next_work = std::move(ready_.front());
    ready_.pop_front();
    next_work();
    pump();
  }
  draining_ = false;
}

void device::submit(request wanted, std::function<void(response)> reply) {
  auto item = std::make_shared<entry>();
  item->wanted = std::move(wanted);
  item->reply = std::move(reply);
  run([this, item] {
    if (closed_) return give(item, response{closed_fault(), 0, {}, {}});
    if (item->wanted.uri.empty() || item->wanted.uri.front() != '/' || item->wanted.uri.starts_with("//")) {
      // A link to another host is never followed with this device's session.
      return give(item, response{make_fault(fault::BMC_BAD_DATA,
                                            fmt::format("{} names {:?}, which is no path on itself; "
                                                        "not followed",
                                                        address_, item->wanted.uri)),
                                 0,
                                 {},
                                 {}});
    }
    queues_[static_cast<std::size_t>(item->wanted.urgency)].push_back(item);
  });
}

callback_of<response> device::send(request wanted) {
  auto shared = std::make_shared<request>(std::move(wanted));
  const auto self = shared_from_this();
  return callback_of<response>([self, shared](std::function<void(response)> reply) {
    self->submit(std::move(*shared), std::move(reply));
  });
}

void device::pump() {
  while (!paused_ && !closed_ && static_cast<int>(in_flight_.size()) < concurrency_) {
    const auto item = next();
    if (!item) return;
    put_on_wire(item);
  }
}

std::shared_ptr<device::entry> device::next() {
  for (auto& queue : queues_) {
    // While a login is under way only what needs no session may pass.
    const auto found = std::find_if(queue.begin(), queue.end(), [this](const std::shared_ptr<entry>& item) {
      return !logging_in_ || !item->wanted.with_session;
    });
    if (found == queue.end()) continue;
    auto item = *found;
    queue.erase(found);
    return item;
  }
  return nullptr;
}

void device::put_on_wire(const std::shared_ptr<entry>& item) {
  const request& wanted = item->wanted;
  if (wanted.still_allowed && !wanted.still_allowed()) return give(item, response{act_withheld(), 0, {}, {}});
  http_request out;
  out.method = wanted.method;
  out.path = wanted.uri;
  out.body = wanted.body;
  out.parts = wanted.parts;
  out.pin = pin_;
  out.timeout = wanted.timeout.count() > 0 ? wanted.timeout : options_.request_timeout;
  out.headers.emplace_back("Accept", "application/json");
  out.headers.emplace_back("OData-Version", "4.0");
  if (!wanted.body.empty()) out.headers.emplace_back("Content-Type", "application/json");
  if (!wanted.if_match.empty()) out.headers.emplace_back("If-Match", wanted.if_match);
  const std::string& token = wanted.with_session ? token_ : wanted.session_token;
  if (!token.empty()) {
    out.headers.emplace_back("X-Auth-Token", token);
  } else if (!basic_.empty() && wanted.with_session) {
    out.headers.emplace_back("Authorization", basic_);
  }

  const std::uint64_t id = next_id_++;
  in_flight_.emplace(id, item);
  ++item->attempts;
  ++figures_.sent;
  figures_.in_flight_peak = std::max(figures_.in_flight_peak, static_cast<int>(in_flight_.size()));
  const std::weak_ptr<device> weak = weak_from_this();
  transport_->send(address_, std::move(out), [weak, id](http_outcome outcome) {
    const auto self = weak.lock();
    if (!self) return;
    auto shared = std::make_shared<http_outcome>(std::move(outcome));
    self->run([self, id, shared] { self->completed(id, std::move(*shared)); });
  });
}

void device::completed(std::uint64_t id, http_outcome outcome) {
  const auto found = in_flight_.find(id);
  if (found == in_flight_.end()) return;  // answered already, by close()
  const auto item = found->second;
  in_flight_.erase(found);

  const bool answered = outcome.error == transport_error::none;
  const bool failed = !answered || outcome.reply.status >= 500;
  if (failed) {
    ++figures_.failed;
    back_off();
  } else {
    all_well();
  }
  if (answered && !basic_.empty()) {
    if (outcome.reply.status == 401) ++wrong_logins_[basic_user_];
    if (outcome.reply.status < 300) wrong_logins_.erase(basic_user_);
  }
  if (answered && pin_.empty()) pin_ = outcome.reply.certificate_sha256;
  if (failed && try_again(item, outcome)) return;
  if (answered && log_in_again(item, outcome)) return;
  if (!answered) {
    const absl::Status status = fault_for(item->wanted, outcome);
    silent_ = outcome.error == transport_error::timeout ? silent_ + 1 : 0;
    const bool gone = outcome.error == transport_error::unreachable || silent_ > options_.read_attempts;
    // What waits behind a device that is gone would only wait for the same answer.
    if (gone) fail_queued(status);
    return give(item, response{status, 0, {}, {}});
  }
  give(item, response{absl::OkStatus(), outcome.reply.status, std::move(outcome.reply.headers),
                      std::move(outcome.reply.body)});
}

bool device::try_again(const std::shared_ptr<entry>& item, const http_outcome& outcome) {
  const bool may_pass = outcome.error == transport_error::timeout || outcome.error == transport_error::none;
  const bool lasting =
      outcome.error == transport_error::none && (outcome.reply.status == 501 || outcome.reply.status == 505 ||
                                                 has_message(outcome.reply.body, "SessionLimitExceeded"));
  if (closed_ || !may_pass || lasting) return false;
  if (item->wanted.method != http_method::get || item->attempts >= options_.read_attempts) return false;
  queues_[static_cast<std::size_t>(item->wanted.urgency)].push_front(item);
  return true;
}

bool device::log_in_again(const std::shared_ptr<entry>& item, const http_outcome& outcome) {
  if (outcome.reply.status != 401 || !item->wanted.with_session || !item->wanted.retry_login) return false;
  if (item->logged_in_for) return false;
  if (closed_ || login_.user.empty()) return false;
  item->logged_in_for = true;
  queues_[static_cast<std::size_t>(item->wanted.urgency)].push_front(item);
  if (logging_in_) return true;
  session_is_gone();
  const auto self = shared_from_this();
  // At once, not by way of the queue: the item must not go out again before the login has begun.
  begin_login(login_, [self](const absl::StatusOr<session_facts>& result) {
    if (result.ok() && self->listener_) self->listener_(*result);
  });
  return true;
}

void device::login_ended(const absl::StatusOr<session_facts>& result) {
  logging_in_ = false;
  if (result.ok()) return;
  // Those that waited for the new session fail with what the login said; the others were never stopped.
  for (auto& queue : queues_) {
    std::deque<std::shared_ptr<entry>> stay;
    for (auto& item : queue) {
      if (item->logged_in_for) {
        give(item, response{result.status(), 0, {}, {}});
      } else {
        stay.push_back(item);
      }
    }
    queue = std::move(stay);
  }
}

void device::back_off() {
  concurrency_ = 1;
  good_answers_ = 0;
  delay_ = std::min(std::max(delay_ * 2, options_.back_off_first), options_.back_off_last);
  if (paused_ || closed_) return;
  paused_ = true;
  const std::weak_ptr<device> weak = weak_from_this();
  loop_->after(delay_, [weak] {
    const auto self = weak.lock();
    if (!self) return;
    self->run([self] { self->paused_ = false; });
  });
}

void device::all_well() {
  silent_ = 0;
  if (concurrency_ == options_.in_flight_limit) return;
  if (++good_answers_ < options_.good_answers_to_recover) return;
  concurrency_ = options_.in_flight_limit;
  delay_ = milliseconds(0);
}

void device::give(const std::shared_ptr<entry>& item, response answer) {
  if (!item->reply) return;
  const auto reply = std::exchange(item->reply, nullptr);
  auto shared = std::make_shared<response>(std::move(answer));
  run([reply, shared] { reply(std::move(*shared)); });
}

void device::fail_queued(const absl::Status& status) {
  for (auto& queue : queues_) {
    for (auto& item : std::exchange(queue, {})) give(item, response{status, 0, {}, {}});
  }
}

void device::open_stream(const std::string& uri, stream_sink sink) {
  close_stream();
  request wanted;
  wanted.uri = uri;
  if (closed_ || !has_session() || !uri.starts_with('/') || uri.starts_with("//")) {
    const absl::Status why =
        closed_ ? closed_fault()
                : make_fault(fault::BMC_BAD_DATA,
                             fmt::format("no event stream at {:?} on {}: no session, or no path on itself", uri,
                                         address_));
    return run([ended = std::move(sink.ended), why] { ended(response{why, 0, {}, {}}); });
  }
  http_request out;
  out.path = uri;
  out.pin = pin_;
  out.headers = {{"Accept", "text/event-stream"}, {"OData-Version", "4.0"}, {"X-Auth-Token", token_}};
  out.flow = flow_ = std::make_shared<http_flow>();
  stream_ = std::move(sink);
  const std::uint64_t number = ++stream_number_;
  const std::weak_ptr<device> weak = weak_from_this();
  flow_->on_bytes = [weak, number](std::string_view bytes) {
    const auto self = weak.lock();
    if (!self || self->stream_number_ != number || !self->flow_) return false;
    const auto take = self->stream_.bytes;  // may replace the stream
    take(bytes);
    return self->stream_number_ == number && self->flow_ != nullptr;
  };
  transport_->send(address_, std::move(out), [weak, number](http_outcome outcome) {
    const auto self = weak.lock();
    if (!self) return;
    auto shared = std::make_shared<http_outcome>(std::move(outcome));
    self->run([self, number, shared] { self->stream_ended(number, std::move(*shared)); });
  });
}

void device::stream_ended(std::uint64_t number, http_outcome outcome) {
  if (number != stream_number_ || flow_ == nullptr) return;  // closed or replaced by us
  flow_.reset();
  const auto ended = std::exchange(stream_, {}).ended;
  if (!ended) return;
  if (outcome.error == transport_error::none) {
    return ended(response{absl::OkStatus(), outcome.reply.status, std::move(outcome.reply.headers),
                          std::move(outcome.reply.body)});
  }
  request asked;
  asked.uri = "its event stream";
  ended(response{fault_for(asked, outcome), 0, {}, {}});
}

void device::close_stream() {
  const auto flow = std::exchange(flow_, nullptr);
  stream_ = {};
  const auto stop = flow ? flow->stop : nullptr;  // a copy: it is taken away while it runs
  if (stop) stop();
}

void device::close() {
  const auto self = shared_from_this();
  run([self] {
    if (self->closed_) return;
    self->closed_ = true;
    self->close_stream();
    self->token_.clear();
    self->login_ = {};
    self->listener_ = nullptr;
    self->fail_queued(self->closed_fault());
    for (auto& [id, item] : std::exchange(self->in_flight_, {})) {
      self->give(item, response{self->closed_fault(), 0, {}, {}});
    }
  });
}

absl::Status device::closed_fault() const {
  return make_fault(fault::BMC_UNREACHABLE,
                    fmt::format("the driver of {} was closed before an answer came", address_));
}

absl::Status device::fault_for(const request& wanted, const http_outcome& outcome) const {
  const std::string what = fmt::format("{} {} on {}", name_of(wanted.method), wanted.uri, address_);
  switch (outcome.error) {
    case transport_error::timeout:
      return make_fault(
          fault::BMC_SLOW,
          fmt::format("{}: no answer within {} ms ({}); wait, or reset the BMC", what,
                      (wanted.timeout.count() > 0 ? wanted.timeout : options_.request_timeout).count(),
                      outcome.detail));
    case transport_error::pin_mismatch:
      return make_fault(
          fault::CERTIFICATE_CHANGED,
          fmt::format("{}: pinned certificate {}, seen {}; nothing was sent; trust the new one if the change "
                      "is legitimate",
                      what, pin_, outcome.reply.certificate_sha256),
          pin_, outcome.reply.certificate_sha256);
    case transport_error::too_large:
      return make_fault(fault::BMC_BAD_DATA,
                        fmt::format("{}: the answer is too large ({})", what, outcome.detail));
    case transport_error::none:
    case transport_error::unreachable:
      break;
  }
  return make_fault(fault::BMC_UNREACHABLE,
                    fmt::format("{}: {}; check power, cable and address of the BMC", what, outcome.detail));
}

}  // namespace busbar::devices::redfish
