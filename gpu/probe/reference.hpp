// The reference engine: the probes in plain C++ on the CPU, for machines without GPUs and as the judge of the
// others' numbers. Its devices are virtual: each "GPU" is a slice of host memory and a share of the cores.
// Correctness and time are measured; width, temperature and error counters are those of the virtual device,
// so its results are judged by the limits named "reference" and say nothing of any hardware.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpu/probe/request.hpp"

namespace busbar::probe {

struct sink {
  std::function<void(const result&)> measured;
  std::function<void(double)> progress;
};

std::vector<std::string> reference_probes();
// Empty: ran to its end. Else why not.
std::string run_reference(const request& asked, const sink& out);

}  // namespace busbar::probe
