#include "daemon/busbard/rpc/agent_work_stream.hpp"

#include <utility>

namespace busbar::rpc {

using validation::agent_event;

std::shared_ptr<agent_work_stream> agent_work_stream::open(agent_stream_host* host,
                                                           grpc::CallbackServerContext* context,
                                                           std::string member, std::int64_t valid_until_s,
                                                           std::size_t queue_limit) {
  std::shared_ptr<agent_work_stream> stream(
      new agent_work_stream(host, context, std::move(member), valid_until_s, queue_limit));
  stream->self_ = stream;
  stream->StartSendInitialMetadata();  // the agent's sign that its certificate was taken
  stream->read_next();
  return stream;
}

agent_work_stream::agent_work_stream(agent_stream_host* host, grpc::CallbackServerContext* context,
                                     std::string member, std::int64_t valid_until_s, std::size_t queue_limit)
    : host_(host),
      context_(context),
      member_(std::move(member)),
      queue_limit_(queue_limit),
      valid_until_s_(valid_until_s) {}

std::int64_t agent_work_stream::valid_until_s() const {
  const std::lock_guard lock(mutex_);
  return valid_until_s_;
}

void agent_work_stream::set_valid_until_s(std::int64_t unix_s) {
  const std::lock_guard lock(mutex_);
  valid_until_s_ = unix_s;
}

bool agent_work_stream::greeted() const {
  const std::lock_guard lock(mutex_);
  return greeted_;
}

bool agent_work_stream::send(agent::DaemonMessage message) {
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return false;
    if (queue_.size() < queue_limit_) {
      queue_.push_back(std::move(message));
      write_next_locked();
      return true;
    }
  }
  close({grpc::StatusCode::RESOURCE_EXHAUSTED, "the agent does not read its orders"},
        "agent does not read its orders");
  return false;
}

void agent_work_stream::close(const grpc::Status& status, const std::string& reason) {
  // Keeps the object alive past a Finish whose OnDone runs on another thread.
  std::shared_ptr<agent_work_stream> keep;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    closing_ = true;
    keep = self_;
    status_ = status;
    queue_.clear();
    if (writing_) {
      context_->TryCancel();  // a peer that does not read must not hold the call open
    } else {
      finish_locked();
    }
  }
  host_->forget(this);
  announce_lost(reason);
}

void agent_work_stream::announce_lost(const std::string& reason) {
  const std::lock_guard lock(emit_mutex_);
  if (!silent_ && announced_) {
    auto event = event_of(agent_event::kind::lost);
    event.reason = reason;
    host_->emit(std::move(event));
  }
  silent_ = true;
}

void agent_work_stream::silence() {
  const std::lock_guard lock(emit_mutex_);
  silent_ = true;
}

void agent_work_stream::OnReadDone(bool ok) {
  if (!ok) {
    close(grpc::Status::OK, bye_.empty() ? "the agent's connection ended" : "the agent left: " + bye_);
    return;
  }
  handle(incoming_);
  read_next();
}

void agent_work_stream::OnWriteDone(bool ok) {
  bool lost = false;
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (closing_) {
      finish_locked();
    } else if (ok) {
      write_next_locked();
    } else {
      lost = true;
    }
  }
  if (lost) close({grpc::StatusCode::UNAVAILABLE, "write failed"}, "the agent's connection broke");
}

void agent_work_stream::OnCancel() {
  close({grpc::StatusCode::CANCELLED, "cancelled"}, "the agent's connection broke");
}

void agent_work_stream::OnDone() {
  std::shared_ptr<agent_work_stream> last;
  {
    const std::lock_guard lock(mutex_);
    last.swap(self_);
  }
}

void agent_work_stream::handle(const agent::AgentMessage& message) {
  using body = agent::AgentMessage::BodyCase;
  if (message.body_case() != body::kHello && !greeted()) {
    close({grpc::StatusCode::INVALID_ARGUMENT, "the first message is a Hello"}, "no Hello");
    return;
  }
  switch (message.body_case()) {
    case body::kHello:
      greet(message.hello());
      return;
    case body::kProgress: {
      auto event = event_of(agent_event::kind::progress);
      event.progress = message.progress();
      emit(std::move(event));
      return;
    }
    case body::kMeasurement: {
      auto event = event_of(agent_event::kind::measurement);
      event.measurement = message.measurement();
      emit(std::move(event));
      return;
    }
    case body::kTestDone: {
      auto event = event_of(agent_event::kind::test_done);
      event.test_done = message.test_done();
      emit(std::move(event));
      return;
    }
    case body::kRenew: {
      std::shared_ptr<agent_work_stream> self;
      {
        const std::lock_guard lock(mutex_);
        self = self_;
      }
      if (self) host_->renew(self, message.renew().csr_pem());
      return;
    }
    case body::kBye:
      bye_ = message.bye().reason().empty() ? "no reason given" : message.bye().reason();
      return;
    case body::BODY_NOT_SET:
      return;  // a newer agent's message: not ours to refuse
  }
}

void agent_work_stream::greet(const agent::Hello& hello) {
  std::shared_ptr<agent_work_stream> self;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    self = self_;
    if (greeted_) self.reset();
    greeted_ = true;
  }
  if (!self) {
    close({grpc::StatusCode::INVALID_ARGUMENT, "a second Hello"}, "a second Hello");
    return;
  }
  if (const grpc::Status admitted = host_->admit(self, hello); !admitted.ok()) {
    close(admitted, admitted.error_message());
    return;
  }
  bool closed_meanwhile = false;
  {
    const std::lock_guard lock(mutex_);
    closed_meanwhile = closing_;
  }
  if (closed_meanwhile) {  // its own forget() came before admit()
    host_->forget(this);
    return;
  }
  const std::lock_guard lock(emit_mutex_);
  if (silent_) return;  // replaced, or the gate stops
  announced_ = true;
  auto event = event_of(agent_event::kind::hello);
  event.hello = hello;
  host_->emit(std::move(event));
}

void agent_work_stream::emit(agent_event event) {
  const std::lock_guard lock(emit_mutex_);
  if (!silent_ && announced_) host_->emit(std::move(event));
}

agent_event agent_work_stream::event_of(agent_event::kind what) const {
  agent_event event;
  event.what = what;
  event.member = member_;
  return event;
}

void agent_work_stream::read_next() {
  const std::lock_guard lock(mutex_);
  if (!closing_) StartRead(&incoming_);
}

void agent_work_stream::write_next_locked() {
  if (writing_ || queue_.empty()) return;
  writing_ = true;
  outgoing_ = std::move(queue_.front());
  queue_.pop_front();
  StartWrite(&outgoing_);
}

void agent_work_stream::finish_locked() {
  if (finished_) return;
  finished_ = true;
  Finish(status_);
}

}  // namespace busbar::rpc
