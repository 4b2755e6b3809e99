// A rack for tests of the edge and of the daemon's life: real journal and operations actors over a store in memory, and an owner
// that begins what it is told and ends nothing by itself.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/core/journal_actor.hpp"
#include "actors/core/operations_actor.hpp"
#include "daemon/busbard/wiring.hpp"
#include "storage/journal_log.hpp"
#include "storage/memory_store.hpp"

namespace busbar::test {

class test_rack final : public daemon::rack_daemon {
 public:
  explicit test_rack(std::shared_ptr<storage::memory_store> disk = std::make_shared<storage::memory_store>());
  ~test_rack() override;

  std::shared_ptr<core::snapshot_hub> hub() const override { return hub_; }
  core::event_source events() const override;
  void submit(std::shared_ptr<const core::command> what, core::answer_ptr answer) override;
  std::vector<std::string> degraded() const override { return {}; }
  bool round_trip(std::chrono::milliseconds limit) override;
  bool stop_operations(std::chrono::milliseconds limit) override;
  bool stop_devices(std::chrono::milliseconds limit) override;
  bool stop_store(std::chrono::milliseconds limit) override;

  // Waits until it is committed and published.
  journal::Position commit(core::journal_batch batch);
  // r01 with so many compute trays, one switch tray and one shelf.
  void declare(int compute_trays);
  void set_step(const std::string& name, journal::NodeStep step);

  void end_operation(const std::string& id, const std::string& state);
  // Runs instead of OPERATIONS.
  using interceptor = std::function<void(std::shared_ptr<const core::command>, core::answer_ptr)>;
  void intercept(interceptor with) { interceptor_ = std::move(with); }
  caf::actor_system& actors() { return system_; }

 private:
  struct configuration : caf::actor_system_config {
    configuration();
  };
  std::shared_ptr<storage::memory_store> disk_;
  std::shared_ptr<storage::journal_log> log_;
  std::shared_ptr<core::snapshot_hub> hub_;
  interceptor interceptor_;
  configuration config_;
  caf::actor_system system_;
  core::journal_actor journal_;
  core::operations_actor operations_;
  core::owner_actor owner_;
};

// A tray in the middle of its life, about as large as a real one.
journal::Node full_node(const std::string& name, journal::MemberKind kind);

}  // namespace busbar::test
