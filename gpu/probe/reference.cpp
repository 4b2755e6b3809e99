#include "gpu/probe/reference.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "gpu/probe/numbers.hpp"

namespace busbar::probe {
namespace {

using clock = std::chrono::steady_clock;

constexpr double virtual_pcie_width = 16;       // lanes
constexpr double virtual_temperature_cel = 40;  // what the virtual device always shows

// Repeats `work` on each device in turn until the asked time is over; at least once each.
void repeat(const request& asked, const sink& out, const std::function<void(std::uint32_t gpu)>& work) {
  const auto begin = clock::now();
  const auto whole = std::chrono::duration<double>(asked.duration_s);
  double told = 0;
  do {
    for (std::uint32_t gpu = 0; gpu < asked.gpus; ++gpu) work(gpu);
    const double fraction =
        asked.duration_s > 0 ? std::chrono::duration<double>(clock::now() - begin) / whole : 1;
    if (fraction - told >= 0.05) {
      told = fraction;
      out.progress(std::min(fraction, 1.0));
    }
  } while (clock::now() - begin < whole);
}

void tell(const request& asked, const sink& out, std::uint32_t gpu, const std::string& metric, double value,
          const std::string& unit) {
  if (wants(asked, metric)) out.measured({gpu, metric, value, "", unit});
}

void tell_text(const request& asked, const sink& out, std::uint32_t gpu, const std::string& metric,
               const std::string& text) {
  if (wants(asked, metric)) out.measured({gpu, metric, std::nullopt, text, ""});
}

// Writes and reads back patterns; each word that differs is an uncorrected error.
std::uint64_t wrong_words(std::size_t words, std::uint64_t seed) {
  std::vector<std::uint64_t> memory(words);
  std::uint64_t wrong = 0;
  for (const std::uint64_t flip : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    sequence writing(seed);
    for (auto& word : memory) word = writing.next() ^ flip;
    sequence reading(seed);
    for (const auto& word : memory) wrong += word == (reading.next() ^ flip) ? 0u : 1u;
  }
  return wrong;
}

std::string diagnostics(const request& asked, const sink& out) {
  const auto words = number_parameter(asked, "words", 1 << 16, 1, 1 << 26);
  if (!words) return "parameter words is not a number from 1 to 67108864";
  std::vector<std::uint64_t> wrong(asked.gpus, 0);
  repeat(asked, out, [&wrong, &words](std::uint32_t gpu) { wrong[gpu] += wrong_words(*words, 7 + gpu); });
  for (std::uint32_t gpu = 0; gpu < asked.gpus; ++gpu) {
    tell(asked, out, gpu, "ecc_uncorrected", static_cast<double>(wrong[gpu]), "count");
    tell(asked, out, gpu, "pcie_width", virtual_pcie_width, "lanes");
  }
  return {};
}

// Bytes copied between two buffers over the time that took; a copy counts its bytes once read and once
// written.
std::string copy_rate(const request& asked, const sink& out, const std::string& metric,
                      double bytes_per_copy_factor) {
  const auto bytes = number_parameter(asked, "bytes", 8u << 20, 4096, 1u << 30);
  if (!bytes) return "parameter bytes is not a number from 4096 to 1073741824";
  std::vector<unsigned char> from(*bytes, 1);
  std::vector<unsigned char> to(*bytes, 0);
  std::vector<double> seconds(asked.gpus, 0);
  std::vector<double> moved(asked.gpus, 0);
  bool same = true;
  unsigned char mark = 1;
  repeat(asked, out, [&](std::uint32_t gpu) {
    from[*bytes / 2] = ++mark;  // each copy differs, so none can be left out
    const auto begin = clock::now();
    std::memcpy(to.data(), from.data(), *bytes);
    seconds[gpu] += std::chrono::duration<double>(clock::now() - begin).count();
    moved[gpu] += static_cast<double>(*bytes) * bytes_per_copy_factor;
    same = same && to[*bytes / 2] == mark && to.back() == from.back();
  });
  if (!same) return "the copy differs from its source";
  for (std::uint32_t gpu = 0; gpu < asked.gpus; ++gpu)
    tell(asked, out, gpu, metric, moved[gpu] / seconds[gpu] / 1e9, "GB/s");
  return {};
}

std::string matrix_burn(const request& asked, const sink& out) {
  const auto size = number_parameter(asked, "size", 96, 8, 4096);
  const auto seed = number_parameter(asked, "seed", 1, 0, UINT64_MAX);
  if (!size || !seed) return "parameters size (8 to 4096) and seed must be whole numbers";
  std::vector<std::string> hashes(asked.gpus);
  repeat(asked, out, [&hashes, &size, &seed](std::uint32_t gpu) {
    const std::string hash = multiply_and_hash(static_cast<std::uint32_t>(*size), *seed);
    // One wrong product among thousands must show at the end: the first difference stays.
    if (hashes[gpu].empty() || hashes[gpu] == hash)
      hashes[gpu] = hash;
    else
      hashes[gpu] = "unstable";
  });
  for (std::uint32_t gpu = 0; gpu < asked.gpus; ++gpu) {
    tell(asked, out, gpu, "gpu_temperature", virtual_temperature_cel, "Cel");
    tell_text(asked, out, gpu, "result_hash", hashes[gpu]);
  }
  return {};
}

std::string training(const request& asked, const sink& out) {
  const auto seed = number_parameter(asked, "seed", 1, 0, UINT64_MAX);
  const auto steps = number_parameter(asked, "steps", 200, 200, 100000);
  if (!seed || !steps) return "parameters seed and steps (200 to 100000) must be whole numbers";
  for (std::uint32_t gpu = 0; gpu < asked.gpus; ++gpu) {
    const auto outcome = train(*seed, static_cast<std::uint32_t>(*steps));
    tell(asked, out, gpu, "loss_at_200", outcome.loss_at_200, "");
    tell_text(asked, out, gpu, "loss_curve", outcome.curve_hash);
    out.progress(static_cast<double>(gpu + 1) / asked.gpus);
  }
  return {};
}

std::optional<ring_operation> ring_named(const std::string& name) {
  if (name == "all_reduce") return ring_operation::all_reduce;
  if (name == "reduce_scatter") return ring_operation::reduce_scatter;
  if (name == "all_gather") return ring_operation::all_gather;
  return std::nullopt;
}

// Within this process, one rank a device: the ranks of this tray only.
std::string collective(const request& asked, const sink& out) {
  const auto elements = number_parameter(asked, "elements", 1 << 14, 1, 1 << 24);
  if (!elements) return "parameter elements is not a number from 1 to 16777216";
  if (asked.size != 0 && asked.size != asked.gpus) {
    return "the reference engine reduces within one tray; a run over several needs another engine";
  }
  const auto named = asked.parameters.find("operation");
  const auto operation = ring_named(named == asked.parameters.end() ? "all_reduce" : named->second);
  if (!operation) return "parameter operation is none of all_reduce, reduce_scatter, all_gather";
  ring_outcome sum;
  sum.wrong.assign(asked.gpus, 0);
  request once = asked;
  once.gpus = 1;
  repeat(once, out, [&sum, &elements, &operation, &asked](std::uint32_t) {
    const auto outcome = run_ring(*operation, asked.gpus, static_cast<std::uint32_t>(*elements), 11);
    for (std::uint32_t gpu = 0; gpu < asked.gpus; ++gpu) sum.wrong[gpu] += outcome.wrong[gpu];
    sum.bytes_moved += outcome.bytes_moved;
    sum.seconds += outcome.seconds;
  });
  for (std::uint32_t gpu = 0; gpu < asked.gpus; ++gpu) {
    tell(asked, out, gpu, "wrong", static_cast<double>(sum.wrong[gpu]), "count");
    tell(asked, out, gpu, "ranks", asked.gpus, "count");
    tell(asked, out, gpu, "busbw", sum.bytes_moved / sum.seconds / 1e9, "GB/s");
  }
  return {};
}

}  // namespace

std::vector<std::string> reference_probes() {
  return {"diagnostics", "memory_copy", "host_device", "matrix_burn", "training", "collective"};
}

std::string run_reference(const request& asked, const sink& out) {
  if (asked.probe == "diagnostics") return diagnostics(asked, out);
  if (asked.probe == "memory_copy") return copy_rate(asked, out, "hbm_copy", 2.0);
  if (asked.probe == "host_device") return copy_rate(asked, out, "h2d", 1.0);
  if (asked.probe == "matrix_burn") return matrix_burn(asked, out);
  if (asked.probe == "training") return training(asked, out);
  if (asked.probe == "collective") return collective(asked, out);
  return "the reference engine has no probe " + asked.probe;
}

}  // namespace busbar::probe
