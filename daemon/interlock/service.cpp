#include "daemon/interlock/service.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <openssl/crypto.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <sstream>

namespace busbar::interlock {
namespace {

constexpr std::int64_t heartbeat_ms = 500;
constexpr std::string_view safety_group = "busbar-safety";

gid_t safety_gid() {
  const ::group* found = ::getgrnam(std::string(safety_group).c_str());
  return found == nullptr ? static_cast<gid_t>(-1) : found->gr_gid;
}

absl::Status make_folder(const std::string& path, std::filesystem::perms mode) {
  // The socket folder is for others to pass through; all else is this user's (main's umask).
  const mode_t before = ::umask(mode == std::filesystem::perms::unknown ? 022 : 077);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  ::umask(before);
  if (error) return absl::UnavailableError(fmt::format("cannot make {}: {}", path, error.message()));
  if (mode != std::filesystem::perms::unknown) std::filesystem::permissions(path, mode, error);
  return absl::OkStatus();
}

}  // namespace

service::service(service_config config)
    : config_(std::move(config)), folder_(config_.state_dir + "/" + config_.instance + "/interlock") {
  state_.rack = config_.instance;
}

service::~service() {
  OPENSSL_cleanse(key_.data(), key_.size());
  io_.reset();
  sockets_.reset();
}

absl::Status service::open() {
  started_ms_ = monotonic_ms();
  started_wall_ns_ = wall_ns();
  auto key = read_key_file(config_.key_file);
  if (!key.ok()) return key.status();
  key_ = *key;
  OPENSSL_cleanse(key->data(), key->size());
  const std::string run_folder = config_.run_dir + "/" + config_.instance;
  if (absl::Status status = make_folder(folder_, std::filesystem::perms::owner_all); !status.ok())
    return status;
  if (absl::Status status = make_folder(run_folder, std::filesystem::perms::unknown); !status.ok())
    return status;
  if (absl::Status status = lock_folders(run_folder); !status.ok()) return status;
  sockets_ = std::make_unique<socket_server>(
      config_.busbard_uid, safety_gid(),
      [this](std::uint64_t ticket, bool operator_socket, const peer& who, const Request& request) {
        on_request(ticket, operator_socket, who, request);
      });
  io_ = std::make_unique<device_io>(
      monotonic_ms, [this](const event& what) { feed(what); },
      [this](const std::string& name) {
        const auto found = state_.devices.find(name);
        return found == state_.devices.end() ? limits{}.poll_min_ms : poll_interval_ms(state_, found->second);
      });
  load_sessions();
  if (absl::Status status = sockets_->listen(run_folder + "/interlock.sock", run_folder + "/operator.sock");
      !status.ok()) {
    return status;
  }
  grants_ = ask_host_grants();
  warning_ = warn_of_shared_user();
  say_line(
      config_.instance, false,
      fmt::format("real-time priority: {}, memory locked: {}{}{}", grants_.realtime ? "yes" : "no",
                  grants_.memory_locked ? "yes" : "no", grants_.detail.empty() ? "" : ": ", grants_.detail));
  if (!warning_.empty()) say_line(config_.instance, true, warning_);
  if (absl::Status status = evidence_.open(folder_); !status.ok())
    say_line(config_.instance, true, std::string(status.message()) + "; a trip will keep no evidence");
  feed(load());
  return absl::OkStatus();
}

absl::Status service::lock_folders(const std::string& run_folder) {
  const std::string who = fmt::format("pid {}, state in {}", ::getpid(), folder_);
  if (absl::Status status = state_lock_.take(folder_ + "/lock", "state folder", who); !status.ok())
    return status;
  return run_lock_.take(run_folder + "/interlock.lock", "socket folder", who);
}

loaded service::load() {
  loaded result;
  result.wall_ns = wall_ns();
  const auto sealed = read_file(folder_ + "/record.sealed");
  const bool first_start = absl::IsNotFound(sealed.status());
  const absl::Status opened =
      latches_.open(folder_ + "/latches.bin",
                    first_start ? std::string_view()
                                : "latches.bin was missing beside a sealed record: it was removed or lost");
  latches_open_ = opened.ok();
  result.latches = latches_.lines();
  result.latch_file_trouble = opened.ok() ? latches_.damage() : std::string(opened.message());
  if (first_start) return result;
  const auto record = sealed.ok() ? open_record(key_, *sealed, config_.instance) : sealed.status();
  if (!sealed.ok() || !record.ok()) {
    const absl::Status& why = sealed.ok() ? record.status() : sealed.status();
    result.record_trouble = std::string(why.message());
  } else if (absl::Status status = check_record(*record, config_.instance); !status.ok()) {
    result.record_trouble = std::string(status.message());
  } else {
    result.record = *record;
  }
  return result;
}

// One "device uri" a line: the sessions that a killed process left behind are deleted by the next, or they
// would pile up to the device's limit.
void service::load_sessions() {
  const auto content = read_file(folder_ + "/sessions");
  if (!content.ok()) return;
  std::map<std::string, std::string> sessions;
  std::istringstream lines(*content);
  std::string device;
  std::string uri;
  while (lines >> device >> uri) {
    if (uri.front() == '/') sessions[device] = uri;
  }
  io_->remember(std::move(sessions));
}

void service::save_sessions() {
  std::string content;
  for (const auto& [device, uri] : io_->sessions()) content += device + " " + uri + "\n";
  if (absl::Status status = replace_file(folder_ + "/sessions", content); !status.ok()) {
    say_line(config_.instance, true, std::string(status.message()));
  }
}

std::string service::warn_of_shared_user() const {
  if (::geteuid() != config_.busbard_uid) return {};
  return fmt::format("one user ({}) runs busbard and the interlock: they are not protected from each other",
                     ::geteuid());
}

absl::Status service::run() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  const int signal_fd = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_fd < 0) return absl::InternalError(std::strerror(errno));
  notify_ready("watching");
  say_line(config_.instance, false, "ready");
  std::vector<pollfd> fds;
  for (bool stop = false; !stop;) {
    io_->turn();
    if (io_->sessions_changed()) save_sessions();
    const std::int64_t now_ms = monotonic_ms();
    const auto due_ms = next_due_ms(state_);
    if (due_ms.has_value() && *due_ms <= now_ms) feed(tick{});
    if (now_ms >= heartbeat_due_ms_) {
      send_heartbeat();
      notify_alive();
      if (absl::Status status = evidence_.flush(now_ms * ms_in_ns); !status.ok())
        say_line(config_.instance, true, std::string(status.message()));
    }
    fds.assign(1, {signal_fd, POLLIN, 0});
    sockets_->add_to(&fds);
    const auto next_ms = next_due_ms(state_);
    io_->wait(&fds, std::min(heartbeat_due_ms_, next_ms.value_or(INT64_MAX)) - now_ms);
    stop = fds.front().revents != 0;
    for (std::size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      sockets_->turn();
      break;
    }
    if (sockets_->take_newcomer()) send_heartbeat();
  }
  ::close(signal_fd);
  notify_stopping();
  say_line(config_.instance, false, "stopped by signal");
  return absl::OkStatus();
}

// Commands come first among the effects and leave the host before anything else is done.
void service::feed(const event& what) {
  bool pushed = true;
  const std::vector<effect> wanted = step(state_, what, monotonic_ms());
  for (const effect& each : wanted) {
    const bool commands = std::holds_alternative<command>(each);
    if (!commands && !std::exchange(pushed, true)) io_->push();
    run_effect(each);
    if (commands) pushed = false;
  }
  if (!pushed) io_->push();
  note_evidence(what);
}

void service::note_evidence(const event& what) {
  const std::int64_t now_ns = monotonic_ms() * ms_in_ns;
  const auto number = [](const std::optional<double>& value) {
    return value.value_or(std::numeric_limits<double>::quiet_NaN());
  };
  if (const auto* read = std::get_if<detectors_read>(&what)) {
    for (const auto& [name, seen] : read->readings) {
      const bool known = seen.seen != DetectorReading::UNKNOWN;
      evidence_.add(now_ns, read->device, name,
                    known ? (seen.seen == DetectorReading::LEAK ? 1.0 : 0.0) : number(std::nullopt));
    }
  } else if (const auto* coolant = std::get_if<coolant_seen>(&what)) {
    evidence_.add(now_ns, coolant->device, "flow_lpm", number(coolant->values.flow_lpm));
    evidence_.add(now_ns, coolant->device, "supply_c", number(coolant->values.supply_c));
    evidence_.add(now_ns, coolant->device, "pressure_kpa", number(coolant->values.pressure_kpa));
    evidence_.add(now_ns, coolant->device, "level_percent", number(coolant->values.level_percent));
  } else if (const auto* power = std::get_if<power_read>(&what)) {
    const bool known = power->seen != power_seen::unknown;
    evidence_.add(now_ns, power->device, "power",
                  known ? (power->seen == power_seen::on ? 1.0 : 0.0) : number(std::nullopt));
  } else if (const auto* valve = std::get_if<valve_read>(&what)) {
    evidence_.add(now_ns, valve->key, "open_percent", number(valve->open_percent));
  }
}

bool service::run_device_effect(const effect& what) {
  if (const auto* order = std::get_if<command>(&what)) {
    io_->run(*order);
    evidence_.add(monotonic_ms() * ms_in_ns, order->device, "command " + order->key, -1);
  } else if (const auto* back = std::get_if<read_back>(&what)) {
    io_->run(*back);
  } else if (const auto* again = std::get_if<read_detectors>(&what)) {
    io_->run(*again);
  } else if (const auto* kept = std::get_if<keep_evidence>(&what)) {
    evidence_.keep(kept->trip, monotonic_ms() * ms_in_ns, wall_ns());
  } else {
    return false;
  }
  return true;
}

void service::run_effect(const effect& what) {
  if (run_device_effect(what)) return;
  if (const auto* store = std::get_if<store_record>(&what)) {
    const auto sealed = seal_record(key_, store->record);
    const absl::Status status =
        sealed.ok() ? replace_file(folder_ + "/record.sealed", *sealed) : sealed.status();
    feed(record_stored{store->request, store->record, status});
  } else if (std::get_if<follow_devices>(&what) != nullptr) {
    io_->follow(state_.record.has_value() ? &*state_.record : nullptr);
  } else if (const auto* write = std::get_if<write_latch>(&what)) {
    Latch line = write->latch;
    if (line.wall_time_ns() == 0) line.set_wall_time_ns(wall_ns());
    line.set_durable(true);
    const absl::Status status = latches_open_
                                    ? latches_.append(line, write->sync)
                                    : absl::UnavailableError("the latch file could not be opened at start");
    feed(latch_written{line.number(), status});
  } else if (const auto* reply = std::get_if<answer>(&what)) {
    Answer message;
    message.set_code(static_cast<std::int32_t>(reply->status.code()));
    message.set_message(std::string(reply->status.message()));
    message.set_fault(reply->fault);
    sockets_->reply(reply->request, std::move(message));
  } else if (std::get_if<publish>(&what) != nullptr) {
    send_heartbeat();
  } else if (const auto* line = std::get_if<say>(&what)) {
    say_line(config_.instance, line->alarm, line->text);
  }
}

void service::on_request(std::uint64_t ticket, bool operator_socket, const peer& who,
                         const Request& request) {
  const auto refuse = [this, ticket](absl::Status status) {
    run_effect(answer{ticket, std::move(status), {}});
  };
  switch (request.body_case()) {
    case Request::kArm:
      if (operator_socket)
        return refuse(
            absl::PermissionDeniedError("an operator hands a record over with Widen, and a reason"));
      return feed(record_offered{ticket, request.arm().record(), false, {}});
    case Request::kBlindWindow:
      return feed(blind_asked{
          ticket, request.blind_window().device(),
          static_cast<std::int64_t>(std::min<std::uint64_t>(request.blind_window().length_ms(), INT32_MAX))});
    case Request::kReadLatches: {
      if (!operator_socket) {
        if (request.read_latches().after_number() > latch_number_max)
          return refuse(absl::InvalidArgumentError("no line of a latch file has so high a number"));
        feed(lines_known{request.read_latches().after_number(), wall_ns()});
      }
      Answer message;
      for (const Latch& line : latches_.lines()) {
        const bool wanted = request.read_latches().all_kinds() || line.kind() == Latch::LEAK_SEEN ||
                            line.kind() == Latch::RESET;
        if (wanted && line.number() > request.read_latches().after_number()) *message.add_latches() = line;
      }
      return sockets_->reply(ticket, std::move(message));
    }
    case Request::kReset:
      if (!operator_socket)
        return refuse(absl::PermissionDeniedError("a latch is reset at the operator's socket, by a person"));
      return feed(reset_asked{ticket, request.reset().device(), request.reset().reason(),
                              fmt::format("uid {}", who.uid), wall_ns()});
    case Request::kWiden:
      if (!operator_socket)
        return refuse(
            absl::PermissionDeniedError("a record is widened at the operator's socket, by a person"));
      return feed(record_offered{ticket, request.widen().record(), true, request.widen().reason()});
    case Request::kTrip:
      return feed(trip_requested{ticket, request.trip().scope(), request.trip().reason(),
                                 fmt::format("uid {}", who.uid), operator_socket});
    case Request::kBypass:
      if (!operator_socket)
        return refuse(
            absl::PermissionDeniedError("a detector is bypassed at the operator's socket, by a person"));
      return feed(bypass_asked{
          ticket, request.bypass().device(), request.bypass().detector(), request.bypass().reason(),
          fmt::format("uid {}", who.uid),
          static_cast<std::int64_t>(std::min<std::uint64_t>(request.bypass().length_s(), INT32_MAX)),
          wall_ns()});
    case Request::BODY_NOT_SET:
      break;
  }
  refuse(absl::UnimplementedError("a request this version does not know"));
}

void service::send_heartbeat() {
  const std::int64_t now_ms = monotonic_ms();
  heartbeat_due_ms_ = now_ms + heartbeat_ms;
  Status status;
  fill_status(state_, now_ms, &status);
  status.set_version(BUSBAR_VERSION);
  status.set_realtime(grants_.realtime);
  status.set_memory_locked(grants_.memory_locked);
  status.set_realtime_detail(grants_.detail);
  status.set_uptime_ms(static_cast<std::uint64_t>(now_ms - started_ms_));
  status.set_started_wall_ns(started_wall_ns_);
  status.set_sequence(++sequence_);
  status.set_warning(warning_);
  sockets_->broadcast(status);
}

}  // namespace busbar::interlock
