#include "daemon/busbard/life.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "actors/core/errors.hpp"
#include "actors/core/log.hpp"
#include "daemon/busbard/instance_lock.hpp"
#include "daemon/busbard/rpc/edge_server.hpp"
#include "storage/disk_room.hpp"

namespace busbar::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds look_interval{5'000};  // how often degraded reasons and the actors' round trip are looked at
constexpr const char* version = "0.1.0";

sigset_t waited_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

// 0 when the time is over.
int wait_for_signal(milliseconds limit) {
  const sigset_t set = waited_signals();
  const timespec time{limit.count() / 1000, (limit.count() % 1000) * 1'000'000};
  const int signal = sigtimedwait(&set, nullptr, &time);
  return signal > 0 ? signal : 0;
}

exit_code code_of(const absl::Status& status) {
  const auto fault = core::fault_of(status);
  // A person has to act first: a restart by a service manager changes nothing.
  if (fault == core::fault::STORE_READ_ONLY || fault == core::fault::STORE_DAMAGED) return exit_code::conflict;
  switch (status.code()) {
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition: return exit_code::conflict;
    case absl::StatusCode::kInvalidArgument: return exit_code::usage;
    case absl::StatusCode::kOk: return exit_code::done;
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kDoNotUseReservedForFutureExpansionUseDefaultInSwitchInstead_: break;
  }
  return exit_code::failed;
}

absl::Status take_locks(const manifest::daemon_config& config, instance_lock& run, instance_lock& state) {
  const std::filesystem::path run_folder = config.run_dir / config.instance;
  const std::string who = fmt::format("process {}, instance {}, state folder {}, sockets in {}", getpid(), config.instance,
                                      config.state_dir.string(), run_folder.string());
  if (absl::Status made = make_run_folder(run_folder); !made.ok()) return made;
  if (absl::Status taken = run.take(run_folder, "socket folder", who); !taken.ok()) return taken;
  if (absl::Status room = storage::check_room((config.state_dir / "store").string()); !room.ok()) return room;
  if (absl::Status made = make_private_folder(config.state_dir); !made.ok()) return made;
  return state.take(config.state_dir, "state folder", who);
}

exit_code start_failed(std::string_view what, const absl::Status& status) {
  const auto fault = core::fault_of(status);
  core::log_error("start_failed", {{"step", what},
                                   {"fault", fault.has_value() ? std::string(core::name_of(*fault)) : std::string()},
                                   {"error", std::string(status.message())}});
  core::log_flush();
  sd_notifyf(0, "STATUS=start failed: %s", std::string(status.message()).c_str());
  return code_of(status);
}

rpc::edge_dependencies edge_needs(const manifest::daemon_config& config, rack_daemon& rack) {
  rpc::edge_dependencies needs;
  needs.instance = config.instance;
  needs.role = config.role;
  needs.version = version;
  needs.journal_parent = rack.journal_parent();
  needs.hub = rack.hub();
  needs.events = rack.events();
  needs.submit = [&rack](std::shared_ptr<const core::command> what, core::answer_ptr answer) {
    rack.submit(std::move(what), std::move(answer));
  };
  needs.degraded = [&rack] { return rack.degraded(); };
  needs.may_be_old = [&rack] { return rack.may_be_old(); };
  needs.board = rack.board();
  needs.hear_demand = rack.demands();
  if (const auto history = rack.history(); history != nullptr) {
    needs.history = [history](const std::string& name, std::int64_t from_s, std::int64_t to_s, std::int64_t step_s,
                              std::size_t limit) { return history->read(name, from_s, to_s, step_s, limit); };
  }
  return needs;
}

rpc::edge_options edge_settings(const manifest::daemon_config& config, const life_options& options) {
  rpc::edge_options settings;
  settings.socket_path = (config.run_dir / config.instance / "busbard.sock").string();
  settings.own_uid = geteuid();
  settings.reflection = options.reflection;
  if (config.tcp.has_value()) {
    const manifest::tcp_config& tcp = *config.tcp;
    settings.tcp = rpc::edge_tcp{tcp.listen, tcp.cert, tcp.key, tcp.ca, {tcp.viewers, tcp.operators}};
  }
  return settings;
}

// Feeds the watchdog and tells when what the daemon can do changes.
class keeper {
 public:
  keeper(rack_daemon& rack, const life_options& options) : rack_(rack), options_(options) {
    std::uint64_t period_us = 0;
    if (sd_watchdog_enabled(0, &period_us) > 0) {
      interval_ = std::min(look_interval, milliseconds(period_us / 2000));
    }
  }

  milliseconds interval() const { return interval_; }

  void look() {
    if (rack_.round_trip(options_.round_trip_limit)) {
      sd_notify(0, "WATCHDOG=1");
      if (std::exchange(stuck_, false)) core::log_info("actors_answer_again");
    } else if (!std::exchange(stuck_, true)) {
      core::log_error("actors_do_not_answer", {{"limit_ms", options_.round_trip_limit.count()}});
    }
    std::vector<std::string> now = rack_.degraded();
    if (now == degraded_) return;
    for (const std::string& reason : now) {
      if (std::find(degraded_.begin(), degraded_.end(), reason) == degraded_.end()) {
        core::log_warning("degraded", {{"reason", reason}});
      }
    }
    if (now.empty()) core::log_info("degraded_no_more");
    degraded_ = std::move(now);
    sd_notifyf(0, "STATUS=%s", degraded_.empty() ? "serving" : degraded_.front().c_str());
  }

 private:
  rack_daemon& rack_;
  const life_options& options_;
  milliseconds interval_ = look_interval;
  std::vector<std::string> degraded_;
  bool stuck_ = false;
};

void wait_for_stop(rack_daemon& rack, const life_options& options) {
  keeper keep(rack, options);
  while (true) {
    const int signal = wait_for_signal(keep.interval());
    if (signal == SIGHUP) {
      core::log_info("reload_refused", {{"reason", "settings are read at start; restart busbard to change them"}});
    } else if (signal != 0) {
      core::log_info("stopping", {{"signal", strsignal(signal)}});
      return;
    } else {
      keep.look();
    }
  }
}

// Impatience is taken at its word: what is durable is durable, and a restart goes on from there.
void end_on_second_signal() {
  struct sigaction at_once {};
  at_once.sa_handler = [](int) { _exit(static_cast<int>(exit_code::failed)); };
  sigaction(SIGTERM, &at_once, nullptr);
  sigaction(SIGINT, &at_once, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// The last resort of a stop: a step that does not even come back at its limit ends the process. What is durable is durable, and
// the next start goes on from there; a stop that never ends would hold the instance's lock for ever.
constexpr milliseconds hang_margin{5'000};
const char* volatile step_under_guard = "";

extern "C" void end_hung_stop(int) {
  constexpr char before[] = "level=error event=stop_step_hung step=";
  const char* const step = step_under_guard;
  // What cannot be written cannot be told.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, before, sizeof before - 1);
  written = write(STDERR_FILENO, step, std::strlen(step));
  written = write(STDERR_FILENO, "\n", 1);
  _exit(static_cast<int>(exit_code::timeout));
}

void guard_against_hanging(const char* step, milliseconds limit) {
  step_under_guard = step;
  struct sigaction at_end {};
  at_end.sa_handler = &end_hung_stop;
  sigaction(SIGALRM, &at_end, nullptr);
  alarm(static_cast<unsigned>((limit + hang_margin).count() / 1000));
}

template <class Step>
bool stop_step(const char* name, milliseconds limit, const Step& step) {
  guard_against_hanging(name, limit);
  const auto begun = steady_clock::now();
  const bool done = step(limit);
  const auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begun).count();
  if (done) {
    core::log_info("stop_step", {{"step", name}, {"took_ms", took}});
  } else {
    core::log_error("stop_step_given_up", {{"step", name}, {"limit_ms", limit.count()}, {"took_ms", took}});
  }
  return done;
}

exit_code stop(rpc::edge_server& edge, rack_daemon& rack, const life_options& options) {
  const bool gave_up = rack.failed();
  sd_notify(0, "STOPPING=1");
  end_on_second_signal();
  bool clean = stop_step("admission", milliseconds(0), [&edge](milliseconds) {
    edge.stop_admission();
    return true;
  });
  clean = stop_step("streams", options.streams_limit, [&edge](milliseconds limit) { return edge.stop_streams(limit); }) && clean;
  clean = stop_step("operations", options.operations_limit, [&rack](milliseconds limit) { return rack.stop_operations(limit); }) &&
          clean;
  clean = stop_step("devices", options.devices_limit, [&rack](milliseconds limit) { return rack.stop_devices(limit); }) && clean;
  clean = stop_step("store", options.store_limit, [&rack](milliseconds limit) { return rack.stop_store(limit); }) && clean;
  if (gave_up) return exit_code::failed;
  return clean ? exit_code::done : exit_code::timeout;
}

}  // namespace

void block_signals() {
  const sigset_t set = waited_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

exit_code serve(const manifest::daemon_config& config, const life_options& options, const rack_factory& make_rack) {
  core::log_info("starting", {{"version", version}, {"pid", getpid()}, {"state_dir", config.state_dir.string()}});
  instance_lock run_lock, state_lock;
  if (absl::Status status = take_locks(config, run_lock, state_lock); !status.ok()) return start_failed("lock", status);
  absl::StatusOr<std::unique_ptr<rack_daemon>> rack = make_rack(config);
  if (!rack.ok()) return start_failed("rack", rack.status());
  core::log_info("rack_wired", {{"revision", (*rack)->hub()->read()->position.revision()}});
  auto edge = rpc::edge_server::start(edge_needs(config, **rack), edge_settings(config, options));
  if (!edge.ok()) {
    const exit_code code = start_failed("edge", edge.status());
    (*rack)->stop_operations(options.operations_limit);
    (*rack)->stop_devices(options.devices_limit);
    (*rack)->stop_store(options.store_limit);
    return code;
  }
  core::log_info("edge_serving", {{"socket", (config.run_dir / config.instance / "busbard.sock").string()},
                                  {"tcp_port", (*edge)->tcp_port()}});
  (*edge)->set_serving(true);
  core::log_info("ready");
  sd_notify(0, "READY=1\nSTATUS=serving");
  wait_for_stop(**rack, options);
  const exit_code code = stop(**edge, **rack, options);
  guard_against_hanging("teardown", milliseconds(0));
  edge->reset();
  rack->reset();
  alarm(0);
  core::log_info("stopped", {{"code", static_cast<int>(code)}});
  core::log_flush();
  return code;
}

std::string print(const manifest::daemon_config& config) {
  std::string text = fmt::format(
      "apiVersion: busbar.v1\nkind: Daemon\ninstance: {}\nrole: {}\nrun_dir: {}\nstate_dir: {}\nsite_dir: {}\nvault_key_file: {}\n"
      "interlock_socket: {}\nagent_ca_dir: {}\n",
      config.instance, config.role, config.run_dir.string(), config.state_dir.string(), config.site_dir.string(),
      config.vault_key_file.string(), config.interlock_socket.string(), config.agent_ca_dir.string());
  if (!config.tcp.has_value()) return text;
  const manifest::tcp_config& tcp = *config.tcp;
  text += fmt::format("tcp:\n  listen: {}\n  cert: {}\n  key: {}\n  ca: {}\n", tcp.listen, tcp.cert.string(), tcp.key.string(),
                      tcp.ca.string());
  if (!tcp.operators.empty()) text += fmt::format("  operators: \"{}\"\n", fmt::join(tcp.operators, ","));
  if (!tcp.viewers.empty()) text += fmt::format("  viewers: \"{}\"\n", fmt::join(tcp.viewers, ","));
  return text;
}

}  // namespace busbar::daemon
