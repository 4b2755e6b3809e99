// An engine that is a program: busbar-probe-<name> in the libexec folder, known by its digest, run as a child
// process.
#pragma once

#include <absl/status/statusor.h>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/agent/child_process.hpp"
#include "daemon/agent/engine.hpp"

namespace busbar::agent_client {

class child_engine final : public engine {
 public:
  // Refuses a program that others than its owner and root may write.
  static absl::StatusOr<std::shared_ptr<child_engine>> open(const std::filesystem::path& folder,
                                                            const std::string& name, std::uint32_t gpus);
  // Every engine of `folder` whose name the agent knows; what is refused is told in `problems`.
  static std::vector<std::shared_ptr<engine>> open_all(const std::filesystem::path& folder,
                                                       std::uint32_t gpus,
                                                       std::vector<std::string>* problems);
  ~child_engine() override;

  std::string name() const override { return name_; }
  std::string sha256() const override { return digest_; }
  bool offers(const std::string& probe) const override;
  void start(const agent::Run& run, run_callbacks report) override;
  void cancel() override;

 private:
  struct order {
    agent::Run run;
    run_callbacks report;
  };

  child_engine(std::filesystem::path program, std::string name, std::string digest, std::uint32_t gpus);
  void work();
  void carry_out(const order& one);

  const std::filesystem::path program_;
  const std::string name_;
  const std::string digest_;
  const std::uint32_t gpus_;
  child_process child_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<order> waiting_;
  bool running_ = false;
  bool ending_ = false;
  std::thread thread_;  // lives as long as the engine: a child dies with the thread that started it
};

}  // namespace busbar::agent_client
