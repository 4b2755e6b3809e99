#include "actors/devices/snmp/snmp_client.hpp"

#include "actors/devices/snmp/netsnmp_glue.hpp"

#include <net-snmp/library/large_fd_set.h>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace busbar::devices::snmp {
namespace {

constexpr std::size_t walk_batch = 20;        // variables a GETBULK
constexpr std::size_t shortest_password = 8;  // RFC 3414, section 11.2

enum class kind { get, walk, set };

struct job {
  kind what = kind::get;
  std::vector<std::string> oids;
  std::int64_t value = 0;
  std::size_t most = 0;
  std::vector<variable> gathered;  // by a walk so far
  std::string from;                // where a walk goes on
  variables_callback reply;
};

// One agent's session and queue. net-snmp's single-session calls are made by the client's thread alone.
struct session {
  std::string address;
  login as;
  std::chrono::milliseconds timeout{1000};
  int retries = 2;
  void* handle = nullptr;
  std::deque<job> waiting;
  bool busy = false;
  bool forgotten = false;
};

}  // namespace

std::optional<std::int64_t> variable::number() const {
  const auto* held = std::get_if<std::int64_t>(&value);
  return held == nullptr ? std::nullopt : std::optional(*held);
}

std::optional<std::string> variable::text() const {
  const auto* held = std::get_if<std::string>(&value);
  return held == nullptr ? std::nullopt : std::optional(*held);
}

class client::impl : public std::enable_shared_from_this<client::impl> {
 public:
  impl() : bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~impl() { ::close(bell_); }

  void start() {
    thread_ = std::thread([this] { run(); });
  }
  void stop() {
    {
      const std::lock_guard<std::mutex> held(mutex_);
      ending_ = true;
    }
    ring();
    thread_.join();
  }
  void submit(const std::shared_ptr<session>& to, job wanted) {
    {
      const std::lock_guard<std::mutex> held(mutex_);
      if (!ending_) {
        added_.emplace_back(to, std::move(wanted));
        ring();
        return;
      }
    }
    wanted.reply(absl::CancelledError("the SNMP client has ended"));
  }
  void forget(const std::shared_ptr<session>& which) {
    const std::lock_guard<std::mutex> held(mutex_);
    which->forgotten = true;
    ring();
  }

 private:
  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t rung = ::write(bell_, &one, sizeof one);
  }
  void run();
  bool take_work();
  void wait_and_read();
  void drop_forgotten();
  void cancel_all();
  bool open(session& one);
  void pump(session& one);
  netsnmp_pdu* build(const job& wanted) const;
  void finish(session& one, absl::StatusOr<std::vector<variable>> result);
  void take(session& one, int operation, const netsnmp_pdu* answer);
  void take_walk(session& one, const netsnmp_pdu& answer);
  static int on_answer(int operation, netsnmp_session*, int, netsnmp_pdu* answer, void* cookie);

  struct cookie {
    impl* self;
    std::shared_ptr<session> one;
  };

  const int bell_;
  std::thread thread_;
  std::mutex mutex_;  // guards the next two, and session::forgotten
  bool ending_ = false;
  std::vector<std::pair<std::shared_ptr<session>, job>> added_;
  // the thread alone
  std::vector<std::unique_ptr<cookie>> sessions_;
  std::map<std::string, std::string> engines_;  // v3 engine of an address, once it was told
};

void client::impl::run() {
  while (take_work()) {
    wait_and_read();
    drop_forgotten();
  }
  cancel_all();
}

bool client::impl::take_work() {
  std::vector<std::pair<std::shared_ptr<session>, job>> added;
  {
    const std::lock_guard<std::mutex> held(mutex_);
    if (ending_) return false;
    added.swap(added_);
  }
  for (auto& [to, wanted] : added) {
    to->waiting.push_back(std::move(wanted));
    bool known = false;
    for (const auto& one : sessions_) known = known || one->one == to;
    if (!known) sessions_.push_back(std::make_unique<cookie>(cookie{this, to}));
    pump(*to);
  }
  return true;
}

void client::impl::wait_and_read() {
  netsnmp_large_fd_set readable;
  netsnmp_large_fd_set_init(&readable, FD_SETSIZE);
  netsnmp_large_fd_setfd(bell_, &readable);
  int highest = bell_ + 1;
  timeval wait{1, 0};
  for (const auto& one : sessions_) {
    int block = 0;
    timeval due = wait;
    if (one->one->handle != nullptr)
      snmp_sess_select_info2(one->one->handle, &highest, &readable, &due, &block);
    if (block == 0 && timercmp(&due, &wait, <)) wait = due;
  }
  const int ready = netsnmp_large_fd_set_select(highest, &readable, nullptr, nullptr, &wait);
  std::uint64_t rung = 0;
  if (ready > 0 && netsnmp_large_fd_is_set(bell_, &readable)) {
    [[maybe_unused]] const ssize_t count = ::read(bell_, &rung, sizeof rung);
  }
  for (const auto& one : sessions_) {
    if (one->one->handle == nullptr) continue;
    if (ready > 0) snmp_sess_read2(one->one->handle, &readable);
    if (one->one->handle != nullptr) snmp_sess_timeout(one->one->handle);
  }
  netsnmp_large_fd_set_cleanup(&readable);
}

void client::impl::drop_forgotten() {
  const std::lock_guard<std::mutex> held(mutex_);
  std::erase_if(sessions_, [](const std::unique_ptr<cookie>& one) {
    if (!one->one->forgotten || one->one->busy || !one->one->waiting.empty()) return false;
    if (one->one->handle != nullptr) snmp_sess_close(one->one->handle);
    return true;
  });
}

void client::impl::cancel_all() {
  std::vector<job> open;
  for (const auto& one : sessions_) {
    for (job& wanted : one->one->waiting) open.push_back(std::move(wanted));
    one->one->waiting.clear();
    if (one->one->handle != nullptr) snmp_sess_close(one->one->handle);
  }
  sessions_.clear();
  {
    const std::lock_guard<std::mutex> held(mutex_);
    for (auto& [to, wanted] : added_) open.push_back(std::move(wanted));
    added_.clear();
  }
  for (job& wanted : open) wanted.reply(absl::CancelledError("the SNMP client has ended"));
}

// With v3 this asks the agent for its engine, and blocks the thread for a time-out at most when nobody
// answers.
bool client::impl::open(session& one) {
  if (one.handle != nullptr) return true;
  netsnmp_session wanted{};
  snmp_sess_init(&wanted);
  std::string peer = "udp:" + one.address;
  wanted.peername = peer.data();
  wanted.timeout = std::chrono::duration_cast<std::chrono::microseconds>(one.timeout).count();
  wanted.retries = one.retries;
  wanted.callback = on_answer;
  for (const auto& known : sessions_) {
    if (known->one.get() == &one) wanted.callback_magic = known.get();
  }
  std::string community = one.as.community;
  std::string user = one.as.user;
  std::string context = one.as.context;
  if (user.empty()) {
    wanted.version = SNMP_VERSION_2c;
    wanted.community = reinterpret_cast<u_char*>(community.data());
    wanted.community_len = community.size();
  } else {
    wanted.contextName = context.data();
    wanted.contextNameLen = context.size();
    if (!use_v3(wanted, user, one.as)) return false;
    if (const auto engine = engines_.find(one.address); engine != engines_.end()) {
      forget_user(engine->second, user);
    }
  }
  one.handle = snmp_sess_open(&wanted);
  return one.handle != nullptr;
}

netsnmp_pdu* client::impl::build(const job& wanted) const {
  oid name[MAX_OID_LEN];
  std::size_t length = 0;
  netsnmp_pdu* pdu = snmp_pdu_create(wanted.what == kind::get   ? SNMP_MSG_GET
                                     : wanted.what == kind::set ? SNMP_MSG_SET
                                                                : SNMP_MSG_GETBULK);
  if (wanted.what == kind::walk) {
    pdu->non_repeaters = 0;
    pdu->max_repetitions = walk_batch;
    parse_oid(wanted.from, name, length);
    snmp_add_null_var(pdu, name, length);
    return pdu;
  }
  for (const std::string& each : wanted.oids) {
    parse_oid(each, name, length);
    if (wanted.what == kind::get) {
      snmp_add_null_var(pdu, name, length);
    } else {
      const auto value = static_cast<std::int32_t>(wanted.value);
      snmp_pdu_add_variable(pdu, name, length, ASN_INTEGER, &value, sizeof value);
    }
  }
  return pdu;
}

void client::impl::pump(session& one) {
  while (!one.busy && !one.waiting.empty()) {
    if (!open(one)) {
      finish(one,
             absl::UnavailableError(fmt::format(
                 "SNMP with {}: no session: no answer, or the user and passwords do not fit", one.address)));
      continue;
    }
    // Reads are asked again; a change goes out once, whatever became of its answer.
    const bool changes = one.waiting.front().what == kind::set;
    snmp_sess_session(one.handle)->retries = changes ? 0 : one.retries;
    netsnmp_pdu* const pdu = build(one.waiting.front());
    if (snmp_sess_async_send(one.handle, pdu, nullptr, nullptr) == 0) {
      snmp_free_pdu(pdu);
      finish(one,
             absl::UnavailableError(fmt::format("SNMP with {}: the request could not be sent", one.address)));
      continue;
    }
    one.busy = true;
  }
}

void client::impl::finish(session& one, absl::StatusOr<std::vector<variable>> result) {
  job done = std::move(one.waiting.front());
  one.waiting.pop_front();
  one.busy = false;
  done.reply(std::move(result));
}

int client::impl::on_answer(int operation, netsnmp_session*, int, netsnmp_pdu* answer, void* magic) {
  auto* const from = static_cast<cookie*>(magic);
  if (!from->one->busy) return 1;
  from->self->take(*from->one, operation, answer);
  return 1;
}

void client::impl::take(session& one, int operation, const netsnmp_pdu* answer) {
  if (const netsnmp_session* said = snmp_sess_session(one.handle); said->securityEngineIDLen > 0) {
    engines_[one.address].assign(reinterpret_cast<const char*>(said->securityEngineID),
                                 said->securityEngineIDLen);
  }
  if (operation != NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE || answer == nullptr) {
    finish(one, absl::DeadlineExceededError(fmt::format(
                    "SNMP with {}: no answer within {} ms, asked {} times", one.address, one.timeout.count(),
                    one.waiting.front().what == kind::set ? 1 : one.retries + 1)));
  } else if (answer->command != SNMP_MSG_RESPONSE) {
    finish(one, absl::PermissionDeniedError(fmt::format(
                    "SNMP with {}: the agent reports a wrong user, password or time", one.address)));
  } else if (answer->errstat != SNMP_ERR_NOERROR) {
    finish(one,
           absl::FailedPreconditionError(fmt::format(
               "SNMP with {}: {}: {}", one.address,
               one.waiting.front().oids.empty() ? one.waiting.front().from : one.waiting.front().oids.front(),
               snmp_errstring(static_cast<int>(answer->errstat)))));
  } else if (one.waiting.front().what == kind::walk) {
    take_walk(one, *answer);
  } else {
    std::vector<variable> got;
    for (const netsnmp_variable_list* at = answer->variables; at != nullptr; at = at->next_variable) {
      got.push_back(read_variable(*at));
    }
    const bool whole = got.size() == one.waiting.front().oids.size();
    finish(one, whole
                    ? absl::StatusOr<std::vector<variable>>(std::move(got))
                    : absl::DataLossError(fmt::format("SNMP with {}: {} variables for {} asked", one.address,
                                                      got.size(), one.waiting.front().oids.size())));
  }
  pump(one);
}

void client::impl::take_walk(session& one, const netsnmp_pdu& answer) {
  job& walk = one.waiting.front();
  const std::string below = walk.oids.front() + ".";
  const std::string asked_from = walk.from;
  bool over = answer.variables == nullptr;
  for (const netsnmp_variable_list* at = answer.variables; at != nullptr && !over; at = at->next_variable) {
    variable next = read_variable(*at);
    // Past the table, the end, or an agent that does not go forward.
    over = !next.oid.starts_with(below) || std::holds_alternative<std::monostate>(next.value) ||
           next.oid == walk.from || walk.gathered.size() >= walk.most;
    if (over) break;
    walk.from = next.oid;
    walk.gathered.push_back(std::move(next));
  }
  if (over || walk.from == asked_from) {
    finish(one, std::move(walk.gathered));
  } else {
    one.busy = false;  // the walk goes on at the head of the queue
  }
}

namespace {

class remote_agent final : public agent {
 public:
  using submit_call = std::function<void(job)>;
  remote_agent(submit_call submit, std::function<void()> forget)
      : submit_(std::move(submit)), forget_(std::move(forget)) {}
  ~remote_agent() override { forget_(); }
  remote_agent(const remote_agent&) = delete;
  remote_agent& operator=(const remote_agent&) = delete;

  void get(std::vector<std::string> oids, variables_callback reply) override {
    job wanted;
    wanted.oids = std::move(oids);
    wanted.reply = std::move(reply);
    check_and_submit(std::move(wanted));
  }
  void walk(std::string below, std::size_t most, variables_callback reply) override {
    job wanted;
    wanted.what = kind::walk;
    wanted.from = below;
    wanted.oids = {std::move(below)};
    wanted.most = most;
    wanted.reply = std::move(reply);
    check_and_submit(std::move(wanted));
  }
  void set(std::string oid, std::int64_t value, variables_callback reply) override {
    job wanted;
    wanted.what = kind::set;
    wanted.oids = {std::move(oid)};
    wanted.value = value;
    wanted.reply = std::move(reply);
    check_and_submit(std::move(wanted));
  }

 private:
  void check_and_submit(job wanted) {
    oid name[MAX_OID_LEN];
    std::size_t length = 0;
    for (const std::string& each : wanted.oids) {
      if (!parse_oid(each, name, length)) {
        wanted.reply(absl::InvalidArgumentError(fmt::format("'{}' is no OID", each)));
        return;
      }
    }
    if (wanted.oids.empty()) {
      wanted.reply(absl::InvalidArgumentError("no OID is asked for"));
      return;
    }
    submit_(std::move(wanted));
  }
  submit_call submit_;
  std::function<void()> forget_;
};

}  // namespace

client::client() : impl_(std::make_shared<impl>()) {
  prepare_library();
  impl_->start();
}
client::~client() {
  impl_->stop();
}

absl::StatusOr<std::shared_ptr<agent>> client::open(const std::string& address, const login& as,
                                                    std::chrono::milliseconds timeout, int retries) {
  if (as.user.empty() && as.community.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("SNMP with {}: neither a community nor a user is given", address));
  }
  if (!as.user.empty() &&
      (as.auth_password.size() < shortest_password || as.privacy_password.size() < shortest_password)) {
    return absl::InvalidArgumentError(
        fmt::format("SNMP with {}: the passwords of user {} need at least {} characters", address, as.user,
                    shortest_password));
  }
  const auto one = std::make_shared<session>();
  one->address = address;
  one->as = as;
  one->timeout = timeout;
  one->retries = retries;
  const std::shared_ptr<impl> held = impl_;
  return std::make_shared<remote_agent>([held, one](job wanted) { held->submit(one, std::move(wanted)); },
                                        [held, one] { held->forget(one); });
}

}  // namespace busbar::devices::snmp
