// One program run to its end in a process group of its own, with its output read line by line. Nothing of it
// outlives run(): the group is killed and reaped whatever happened. One run at a time; kill() from any
// thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

namespace busbar::agent_client {

struct child_end {
  bool started = false;
  bool killed = false;  // by kill(), or because its output broke a limit
  int exit_code = -1;   // -1: ended by a signal or never started
  int signal = 0;
  std::string error;        // why it was not started or was killed
  std::string stderr_tail;  // the last 2 KiB
};

class child_process {
 public:
  child_process();
  ~child_process();
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  // Runs what the open file `program_fd` holds (not what its path may hold by now). `line` gets each line of
  // stdout without its end; false from it kills the child. No argument, no environment but PATH; stdin is
  // `input`, then closed. Blocks.
  child_end run(int program_fd, const std::string& name, const std::string& input,
                const std::function<bool(const std::string&)>& line);
  // The run in progress, or the next one if none is, ends at once.
  void kill();
  // Takes back a kill() that met no run.
  void arm();

 private:
  const int stop_fd_;  // eventfd
};

}  // namespace busbar::agent_client
