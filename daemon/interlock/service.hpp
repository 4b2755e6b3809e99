// The program: one thread, one loop over devices, sockets and the stop signal. Feeds events into step() and
// runs its effects.
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string>

#include "daemon/interlock/device_io.hpp"
#include "daemon/interlock/evidence.hpp"
#include "daemon/interlock/folder_lock.hpp"
#include "daemon/interlock/interlock_logic.hpp"
#include "daemon/interlock/latch_file.hpp"
#include "daemon/interlock/realtime.hpp"
#include "daemon/interlock/sealed_file.hpp"
#include "daemon/interlock/socket_server.hpp"

namespace busbar::interlock {

struct service_config {
  std::string instance;   // "r01"
  std::string run_dir;    // sockets in <run_dir>/<instance>/
  std::string state_dir;  // files in <state_dir>/<instance>/interlock/
  std::string key_file;
  uid_t busbard_uid = 0;  // who may connect to interlock.sock, besides root
};

class service {
 public:
  explicit service(service_config config);
  ~service();
  service(const service&) = delete;
  service& operator=(const service&) = delete;

  // Locks its two folders, opens latches and record, listens. After an error the process ends.
  absl::Status open();
  // Until SIGTERM or SIGINT, which must be blocked in every thread.
  absl::Status run();

 private:
  absl::Status lock_folders(const std::string& run_folder);
  loaded load();
  void load_sessions();
  void save_sessions();
  std::string warn_of_shared_user() const;
  void feed(const event& what);
  void run_effect(const effect& what);
  bool run_device_effect(const effect& what);
  void note_evidence(const event& what);
  void on_request(std::uint64_t ticket, bool operator_socket, const peer& who, const Request& request);
  void send_heartbeat();

  service_config config_;
  std::string folder_;
  folder_lock state_lock_;
  folder_lock run_lock_;  // the sockets': another state folder does not make a second interlock
  seal_key key_{};
  host_grants grants_;
  std::string warning_;
  std::int64_t started_ms_ = 0;
  std::int64_t started_wall_ns_ = 0;
  std::int64_t heartbeat_due_ms_ = 0;
  std::uint64_t sequence_ = 0;
  state state_;
  latch_file latches_;
  bool latches_open_ = false;
  evidence_recorder evidence_;
  std::unique_ptr<device_io> io_;
  std::unique_ptr<socket_server> sockets_;
};

}  // namespace busbar::interlock
