#include "daemon/agent/agent_client.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>
#include <variant>

#include "daemon/agent/back_off.hpp"
#include "daemon/agent/gate_calls.hpp"
#include "daemon/agent/identity.hpp"
#include "daemon/agent/run_board.hpp"
#include "daemon/agent/token.hpp"
#include "daemon/agent/x509.hpp"

namespace busbar::agent_client {
namespace {

using clock = event_loop::clock;

// Results that wait for a connection. Past it the oldest go: the judge then finds them missing, which never
// passes.
constexpr std::size_t outbox_limit = 4096;
constexpr std::chrono::seconds settled_after(10);  // a stream that lived so long starts the back-off anew
constexpr std::chrono::seconds renew_retry(30);
constexpr std::chrono::milliseconds leave_limit(1000);

std::int64_t wall_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string message_of(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

}  // namespace

std::string_view to_text(agent_phase phase) {
  switch (phase) {
    case agent_phase::waiting:
      return "waiting";
    case agent_phase::enrolling:
      return "enrolling";
    case agent_phase::connecting:
      return "connecting";
    case agent_phase::connected:
      return "connected";
    case agent_phase::refused:
      return "refused";
    case agent_phase::stopped:
      return "stopped";
  }
  return "";
}

// All of it lives on the loop, except the count of what is still out (which stop() waits for).
class agent_client::session : public std::enable_shared_from_this<session> {
 public:
  session(event_loop& loop, agent_options options, std::vector<std::shared_ptr<engine>> engines,
          observer watch)
      : loop_(loop),
        options_(std::move(options)),
        engines_(std::move(engines)),
        watch_(std::move(watch)),
        store_(options_.identity_file),
        wait_(options_.first_wait, options_.longest_wait, options_.seed) {}

  void begin();
  void end(const std::string& bye_reason);
  void wait_until_ended();

 private:
  void tell(agent_phase phase, const std::string& why) {
    if (watch_) watch_(phase, why);
  }
  void go_on();
  void try_again(agent_phase phase, const std::string& why);
  void birth();
  void born(const call_end& end, const agent::EnrolResponse& response);
  void connect();
  void on_open();
  void on_message(agent::DaemonMessage message);
  void on_closed(const call_end& end);
  agent::AgentMessage hello() const;

  void plan_renewal();
  void renew_certificate();
  void renewed(const std::string& certificate_pem);

  void apply(run_board::steps steps);
  void start_test(const agent::Run& run);
  engine* engine_for(const agent::Run& run, std::string* why_not) const;
  void test_ended(std::uint64_t test_number, bool ok, const std::string& error);
  void plan_tick();
  void report(agent::AgentMessage message);
  void flush();
  void maybe_ended();

  event_loop& loop_;
  const agent_options options_;
  const std::vector<std::shared_ptr<engine>> engines_;
  const observer watch_;

  identity_store store_;
  identity mine_;
  std::string pending_key_;
  std::unique_ptr<work_call> call_;
  bool open_ = false;
  clock::time_point opened_at_;
  back_off wait_;
  std::uint64_t renewal_generation_ = 0;
  run_board board_;
  std::uint64_t tick_generation_ = 0;
  std::uint64_t test_number_ = 0;  // of the test in progress; late reports of an older one are dropped
  engine* running_ = nullptr;
  std::deque<agent::AgentMessage> outbox_;
  bool enrolling_ = false;
  bool ending_ = false;
  bool begun_ = false;

  std::mutex ended_mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
};

void agent_client::session::begin() {
  if (begun_ || ending_) return;
  begun_ = true;
  mine_ = store_.load();
  const std::string digest = sha256_hex(options_.token);
  if (!options_.token.empty() && mine_.token_digest != digest) mine_ = identity{};
  mine_.token_digest = options_.token.empty() ? mine_.token_digest : digest;
  go_on();
}

void agent_client::session::go_on() {
  if (ending_ || call_ || enrolling_) return;
  if (!mine_.certificate_pem.empty()) {
    const auto facts = read_certificate(mine_.certificate_pem);
    if (!facts.ok() || facts->not_after <= wall_seconds()) mine_.certificate_pem.clear();
  }
  if (mine_.certificate_pem.empty()) {
    birth();
  } else {
    connect();
  }
}

void agent_client::session::try_again(agent_phase phase, const std::string& why) {
  if (ending_) {
    maybe_ended();
    return;
  }
  tell(phase, why);
  loop_.post_after(wait_.next(), [weak = weak_from_this()] {
    if (const auto me = weak.lock()) me->go_on();
  });
}

void agent_client::session::birth() {
  const auto parsed = parse_token(options_.token);
  if (!parsed.ok()) {
    try_again(agent_phase::refused, message_of(parsed.status()));
    return;
  }
  // The key is kept before the gate is asked: asked again with the same key, the gate answers again.
  if (mine_.key_pem.empty()) {
    auto key = new_key_pem();
    if (key.ok()) mine_.key_pem = *std::move(key);
    if (auto kept = store_.save(mine_); !kept.ok()) tell(agent_phase::waiting, message_of(kept));
  }
  auto csr = make_csr(mine_.key_pem, "busbar-agent");
  if (!csr.ok()) {
    mine_.key_pem.clear();
    try_again(agent_phase::waiting, message_of(csr.status()));
    return;
  }
  agent::EnrolRequest request;
  request.set_token(options_.token);
  request.set_csr_pem(*std::move(csr));
  request.set_dmi_serial(options_.dmi_serial);
  request.set_boot_id(options_.boot_id);
  enrolling_ = true;
  tell(agent_phase::enrolling, options_.endpoint);
  enrol(loop_, options_.endpoint, parsed->ca_sha256_hex, request,
        [me = shared_from_this()](const call_end& end, const agent::EnrolResponse& response) {
          me->born(end, response);
        });
}

void agent_client::session::born(const call_end& end, const agent::EnrolResponse& response) {
  enrolling_ = false;
  if (ending_) {
    maybe_ended();
    return;
  }
  if (end.outcome != call_outcome::ok) {
    try_again(end.outcome == call_outcome::refused ? agent_phase::refused : agent_phase::waiting, end.text);
    return;
  }
  const auto parsed = parse_token(options_.token);
  const auto ca = read_certificate(response.ca_pem());
  if (!ca.ok() || !parsed.ok() || ca->sha256_hex != parsed->ca_sha256_hex ||
      !key_matches(mine_.key_pem, response.certificate_pem()).ok()) {
    try_again(agent_phase::refused, "the gate's answer is not a certificate for this agent's key");
    return;
  }
  mine_.certificate_pem = response.certificate_pem();
  mine_.ca_pem = response.ca_pem();
  if (auto kept = store_.save(mine_); !kept.ok()) tell(agent_phase::waiting, message_of(kept));
  go_on();
}

void agent_client::session::connect() {
  tell(agent_phase::connecting, options_.endpoint);
  open_ = false;
  const auto me = shared_from_this();
  call_ = work_call::start(
      loop_, options_.endpoint, mine_,
      {[me] { me->on_open(); }, [me](agent::DaemonMessage message) { me->on_message(std::move(message)); },
       [me](const call_end& end) { me->on_closed(end); }});
  call_->send(hello());
}

agent::AgentMessage agent_client::session::hello() const {
  agent::AgentMessage message;
  auto* mine = message.mutable_hello();
  mine->set_boot_id(options_.boot_id);
  mine->set_dmi_serial(options_.dmi_serial);
  for (const auto& serial : options_.gpu_serials) mine->add_gpu_serials(serial);
  for (const auto& one : engines_) {
    auto* shown = mine->add_engines();
    shown->set_name(one->name());
    shown->set_sha256(one->sha256());
  }
  mine->set_software_version(options_.software_version);
  mine->set_limits(options_.limits);
  return message;
}

void agent_client::session::on_open() {
  if (open_ || ending_) return;
  open_ = true;
  opened_at_ = clock::now();
  tell(agent_phase::connected, options_.endpoint);
  plan_renewal();
  flush();
}

void agent_client::session::on_message(agent::DaemonMessage message) {
  if (ending_) return;
  on_open();  // a message may overtake the news of the opening
  using body = agent::DaemonMessage::BodyCase;
  const auto now = clock::now();
  switch (message.body_case()) {
    case body::kRun:
      apply(board_.accept(message.run(), now));
      return;
    case body::kCancel:
      apply(board_.cancel(message.cancel().run_id(), "cancelled", now));
      return;
    case body::kLeaseRenew:
      board_.renew(message.lease_renew().run_id(), now);
      plan_tick();
      return;
    case body::kRenewed:
      renewed(message.renewed().certificate_pem());
      return;
    case body::BODY_NOT_SET:
      return;  // a newer daemon's message
  }
}

void agent_client::session::on_closed(const call_end& end) {
  call_.reset();
  if (open_ && clock::now() - opened_at_ >= settled_after) wait_.reset();
  open_ = false;
  ++renewal_generation_;
  if (end.outcome == call_outcome::refused) mine_.certificate_pem.clear();  // back to the token
  try_again(end.outcome == call_outcome::refused ? agent_phase::refused : agent_phase::waiting, end.text);
}

void agent_client::session::plan_renewal() {
  const auto facts = read_certificate(mine_.certificate_pem);
  if (!facts.ok()) return;
  const auto left = std::chrono::seconds(std::max<std::int64_t>(0, facts->not_after - wall_seconds()));
  const std::uint64_t generation = ++renewal_generation_;
  loop_.post_after(std::chrono::duration_cast<std::chrono::milliseconds>(left) * 2 / 3,
                   [weak = weak_from_this(), generation] {
                     const auto me = weak.lock();
                     if (me && generation == me->renewal_generation_) me->renew_certificate();
                   });
}

void agent_client::session::renew_certificate() {
  if (!call_ || !open_ || ending_) return;
  auto key = new_key_pem();
  auto csr = key.ok() ? make_csr(*key, "busbar-agent") : key;
  if (csr.ok()) {
    pending_key_ = *std::move(key);
    agent::AgentMessage message;
    message.mutable_renew()->set_csr_pem(*std::move(csr));
    call_->send(std::move(message));
  }
  const std::uint64_t generation = ++renewal_generation_;
  loop_.post_after(renew_retry, [weak = weak_from_this(), generation] {
    const auto me = weak.lock();
    if (me && generation == me->renewal_generation_) me->renew_certificate();
  });
}

void agent_client::session::renewed(const std::string& certificate_pem) {
  if (pending_key_.empty() || !key_matches(pending_key_, certificate_pem).ok()) return;
  mine_.key_pem = std::exchange(pending_key_, "");
  mine_.certificate_pem = certificate_pem;
  if (auto kept = store_.save(mine_); !kept.ok()) tell(agent_phase::connected, message_of(kept));
  plan_renewal();
}

void agent_client::session::apply(run_board::steps steps) {
  for (auto& step : steps) {
    if (auto* begin = std::get_if<run_board::start_test>(&step)) {
      start_test(begin->run);
    } else if (auto* done = std::get_if<run_board::report_done>(&step)) {
      agent::AgentMessage message;
      *message.mutable_test_done() = std::move(done->done);
      report(std::move(message));
    } else if (running_ != nullptr) {
      running_->cancel();
    }
  }
  plan_tick();
}

engine* agent_client::session::engine_for(const agent::Run& run, std::string* why_not) const {
  for (const auto& one : engines_) {
    if (!run.engine().empty() && one->name() != run.engine()) continue;
    if (!one->offers(run.probe())) continue;
    if (!run.engine_sha256().empty() && one->sha256() != run.engine_sha256()) {
      *why_not = absl::StrCat("engine ", one->name(), " has digest ", one->sha256(), ", the order names ",
                              run.engine_sha256());
      return nullptr;
    }
    return one.get();
  }
  *why_not = absl::StrCat("no engine ", run.engine(), " here offers the probe ", run.probe());
  return nullptr;
}

void agent_client::session::start_test(const agent::Run& run) {
  const std::uint64_t number = ++test_number_;
  std::string why_not;
  running_ = engine_for(run, &why_not);
  if (running_ == nullptr) {
    // Posted, so that the board is not re-entered from its own steps.
    loop_.post([me = shared_from_this(), number, why_not] { me->test_ended(number, false, why_not); });
    return;
  }
  const auto me = shared_from_this();
  run_callbacks callbacks;
  callbacks.progress = [me, number, run_id = run.run_id(), test = run.test()](double fraction) {
    me->loop_.post([me, number, run_id, test, fraction] {
      if (number != me->test_number_) return;
      agent::AgentMessage message;
      auto* progress = message.mutable_progress();
      progress->set_run_id(run_id);
      progress->set_test(test);
      progress->set_fraction(fraction);
      if (me->open_) me->report(std::move(message));  // never kept for later
    });
  };
  callbacks.measurement = [me, number, run_id = run.run_id(),
                           test = run.test()](agent::Measurement measured) {
    me->loop_.post([me, number, run_id, test, measured = std::move(measured)]() mutable {
      if (number != me->test_number_) return;
      measured.set_run_id(run_id);
      measured.set_test(test);
      agent::AgentMessage message;
      *message.mutable_measurement() = std::move(measured);
      me->report(std::move(message));
    });
  };
  callbacks.done = [me, number](bool ok, const std::string& error) {
    me->loop_.post([me, number, ok, error] { me->test_ended(number, ok, error); });
  };
  running_->start(run, std::move(callbacks));
}

void agent_client::session::test_ended(std::uint64_t test_number, bool ok, const std::string& error) {
  if (test_number != test_number_ || !board_.busy()) return;
  running_ = nullptr;
  apply(board_.finished(ok, error, clock::now()));
  maybe_ended();
}

void agent_client::session::plan_tick() {
  const auto due = board_.next_due();
  const std::uint64_t generation = ++tick_generation_;
  if (!due || ending_) return;
  loop_.post_at(*due, [weak = weak_from_this(), generation] {
    const auto me = weak.lock();
    if (me && generation == me->tick_generation_) me->apply(me->board_.tick(clock::now()));
  });
}

void agent_client::session::report(agent::AgentMessage message) {
  if (ending_ && !open_) return;
  if (open_ && call_ && outbox_.empty()) {
    call_->send(std::move(message));
    return;
  }
  if (outbox_.size() >= outbox_limit) outbox_.pop_front();
  outbox_.push_back(std::move(message));
}

void agent_client::session::flush() {
  while (!outbox_.empty() && call_) {
    call_->send(std::move(outbox_.front()));
    outbox_.pop_front();
  }
}

void agent_client::session::end(const std::string& bye_reason) {
  if (ending_) return;
  apply(board_.end_all(bye_reason.empty() ? "the agent was cut" : bye_reason, clock::now()));
  ending_ = true;
  if (call_ && !bye_reason.empty()) {
    agent::AgentMessage bye;
    bye.mutable_bye()->set_reason(bye_reason);
    call_->send(std::move(bye));
    call_->leave();
    loop_.post_after(leave_limit, [weak = weak_from_this()] {
      const auto me = weak.lock();
      if (me && me->call_) me->call_->cut();
    });
  } else if (call_) {
    call_->cut();
  }
  maybe_ended();
}

void agent_client::session::maybe_ended() {
  if (!ending_ || call_ || enrolling_ || board_.busy()) return;
  bool first = false;
  {
    const std::lock_guard lock(ended_mutex_);
    first = !std::exchange(ended_, true);
  }
  if (first) tell(agent_phase::stopped, "");
  ended_changed_.notify_all();
}

void agent_client::session::wait_until_ended() {
  std::unique_lock lock(ended_mutex_);
  ended_changed_.wait(lock, [this] { return ended_; });
}

agent_client::agent_client(event_loop& loop, agent_options options,
                           std::vector<std::shared_ptr<engine>> engines, observer watch)
    : session_(std::make_shared<session>(loop, std::move(options), std::move(engines), std::move(watch))),
      loop_(loop) {}

agent_client::~agent_client() {
  stop("");
}

void agent_client::start() {
  loop_.post([me = session_] { me->begin(); });
}

void agent_client::begin_stop(const std::string& bye_reason) {
  loop_.post([me = session_, bye_reason] { me->end(bye_reason); });
}

void agent_client::stop(const std::string& bye_reason) {
  if (loop_.post([me = session_, bye_reason] { me->end(bye_reason); })) session_->wait_until_ended();
}

}  // namespace busbar::agent_client
