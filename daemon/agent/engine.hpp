// What measures: a named program with a digest that offers probes. The agent runs one test at a time.
#pragma once

#include <functional>
#include <string>

#include "busbar/agent/agent.pb.h"

namespace busbar::agent_client {

// May be called on any thread; the agent brings them onto its loop. `done` exactly once, last.
struct run_callbacks {
  std::function<void(double fraction)> progress;
  std::function<void(agent::Measurement)> measurement;  // run_id and test are filled in by the agent
  std::function<void(bool ok, std::string error)> done;
};

class engine {
 public:
  virtual ~engine() = default;
  virtual std::string name() const = 0;    // reference, cuda, nccl, ucx, model
  virtual std::string sha256() const = 0;  // hex, of the program
  virtual bool offers(const std::string& probe) const = 0;
  // Returns at once. Never called while an earlier run has not called done.
  virtual void start(const agent::Run& run, run_callbacks report) = 0;
  // The run in progress ends soon, whatever it takes; done is still called. No run in progress: nothing
  // happens.
  virtual void cancel() = 0;
};

}  // namespace busbar::agent_client
