#include "gpu/probe/numbers.hpp"

#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <utility>

namespace busbar::probe {
namespace {

constexpr int inputs = 8;
constexpr int hidden = 16;
constexpr int outputs = 4;
constexpr int samples = 64;
constexpr int fraction_bits = 16;
constexpr std::int64_t one = std::int64_t{1} << fraction_bits;

using fixed = std::int64_t;  // 16.16, kept in 64 bits so that products do not overflow

fixed times(fixed a, fixed b) {
  return (a * b) / one;
}  // division: towards zero on every machine

fixed small_weight(sequence& source) {
  return static_cast<fixed>(source.next() % 32768) - 16384;
}  // [-0.25, 0.25)

struct network {
  std::array<std::array<fixed, inputs>, hidden> first{};
  std::array<std::array<fixed, hidden>, outputs> second{};
};

struct data_set {
  std::array<std::array<fixed, inputs>, samples> x{};
  std::array<std::array<fixed, outputs>, samples> y{};
};

network seeded_network(sequence& source) {
  network net;
  for (auto& row : net.first) {
    for (auto& weight : row) weight = small_weight(source);
  }
  for (auto& row : net.second) {
    for (auto& weight : row) weight = small_weight(source);
  }
  return net;
}

// Targets are a fixed linear mix of the inputs, so that there is something to learn.
data_set seeded_data(sequence& source) {
  data_set data;
  std::array<std::array<fixed, inputs>, outputs> mix{};
  for (auto& row : mix) {
    for (auto& weight : row) weight = static_cast<fixed>(source.next() % 131072) - 65536;
  }
  for (int s = 0; s < samples; ++s) {
    auto& x = data.x[static_cast<std::size_t>(s)];
    for (auto& value : x) value = static_cast<fixed>(source.next() % 131072) - 65536;
    for (std::size_t o = 0; o < outputs; ++o) {
      for (std::size_t i = 0; i < inputs; ++i)
        data.y[static_cast<std::size_t>(s)][o] += times(mix[o][i], x[i]);
    }
  }
  return data;
}

// One pass over all samples: adds the gradients and gives the mean squared error.
fixed pass(const network& net, const data_set& data, network& gradient) {
  fixed loss = 0;
  for (std::size_t s = 0; s < samples; ++s) {
    std::array<fixed, hidden> h{};
    for (std::size_t j = 0; j < hidden; ++j) {
      for (std::size_t i = 0; i < inputs; ++i) h[j] += times(net.first[j][i], data.x[s][i]);
      if (h[j] < 0) h[j] = 0;
    }
    std::array<fixed, hidden> back{};
    for (std::size_t o = 0; o < outputs; ++o) {
      fixed out = 0;
      for (std::size_t j = 0; j < hidden; ++j) out += times(net.second[o][j], h[j]);
      const fixed error = out - data.y[s][o];
      loss += times(error, error);
      for (std::size_t j = 0; j < hidden; ++j) {
        gradient.second[o][j] += times(error, h[j]);
        back[j] += times(error, net.second[o][j]);
      }
    }
    for (std::size_t j = 0; j < hidden; ++j) {
      if (h[j] == 0) continue;
      for (std::size_t i = 0; i < inputs; ++i) gradient.first[j][i] += times(back[j], data.x[s][i]);
    }
  }
  return loss / samples;
}

void descend(network& net, const network& gradient) {
  constexpr fixed divisor = samples * 10;  // learning rate 0.1 over the batch's mean
  for (std::size_t j = 0; j < hidden; ++j) {
    for (std::size_t i = 0; i < inputs; ++i) net.first[j][i] -= gradient.first[j][i] / divisor;
  }
  for (std::size_t o = 0; o < outputs; ++o) {
    for (std::size_t j = 0; j < hidden; ++j) net.second[o][j] -= gradient.second[o][j] / divisor;
  }
}

using words = std::vector<std::uint64_t>;

// What the result must be, and each rank's buffer before: the sum over all ranks (it wraps: the same in every
// order), or, to gather, each owner's chunk.
std::pair<words, std::vector<words>> fill_buffers(std::uint32_t ranks, std::size_t chunk, std::uint64_t seed,
                                                  bool gather) {
  const std::size_t n = chunk * ranks;
  std::pair<words, std::vector<words>> out{words(n, 0), std::vector<words>(ranks, words(n))};
  for (std::uint32_t r = 0; r < ranks; ++r) {
    sequence source(seed + r);
    for (std::size_t i = 0; i < n; ++i) {
      out.second[r][i] = source.next();
      const bool owned = i / chunk == (r + 1) % ranks;
      if (!gather || owned) out.first[i] += out.second[r][i];
    }
  }
  return out;
}

}  // namespace

std::uint64_t sequence::next() {
  state_ += 0x9E3779B97F4A7C15ull;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

void result_hash::add(std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) {
    state_ ^= (value >> (8 * byte)) & 0xff;
    state_ *= 1099511628211ull;
  }
}

std::string result_hash::hex() const {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(state_));
  return text;
}

std::string multiply_and_hash(std::uint32_t size, std::uint64_t seed) {
  const std::size_t n = size;
  std::vector<std::int8_t> a(n * n);
  std::vector<std::int8_t> b(n * n);
  sequence source(seed);
  for (auto& value : a) value = static_cast<std::int8_t>(source.next() & 0xff);
  for (auto& value : b) value = static_cast<std::int8_t>(source.next() & 0xff);
  result_hash hash;
  std::vector<std::int32_t> row(n);
  for (std::size_t i = 0; i < n; ++i) {
    row.assign(n, 0);
    for (std::size_t k = 0; k < n; ++k) {
      const std::int32_t factor = a[i * n + k];
      for (std::size_t j = 0; j < n; ++j) row[j] += factor * b[k * n + j];
    }
    for (const std::int32_t value : row)
      hash.add(static_cast<std::uint64_t>(static_cast<std::uint32_t>(value)));
  }
  return hash.hex();
}

training_outcome train(std::uint64_t seed, std::uint32_t steps) {
  sequence source(seed);
  const data_set data = seeded_data(source);
  network net = seeded_network(source);
  result_hash curve;
  training_outcome outcome;
  for (std::uint32_t step = 0; step <= steps; ++step) {
    network gradient;
    const fixed loss = pass(net, data, gradient);
    curve.add(static_cast<std::uint64_t>(loss));
    if (step == 200) outcome.loss_at_200 = static_cast<double>(loss) / static_cast<double>(one);
    descend(net, gradient);
  }
  outcome.curve_hash = curve.hex();
  return outcome;
}

ring_outcome run_ring(ring_operation operation, std::uint32_t ranks, std::uint32_t elements,
                      std::uint64_t seed) {
  // A whole number of equal chunks, one a rank; rank r owns chunk r + 1.
  const std::size_t chunk = (elements + ranks - 1) / ranks;
  const auto expected_and_filled = fill_buffers(ranks, chunk, seed, operation == ring_operation::all_gather);
  auto buffers = expected_and_filled.second;
  std::barrier<> step_done(static_cast<std::ptrdiff_t>(ranks));
  const auto rank_work = [&buffers, &step_done, chunk, ranks, operation](std::uint32_t rank) {
    auto& mine = buffers[rank];
    const auto& left = buffers[(rank + ranks - 1) % ranks];
    for (std::uint32_t step = 0; step + 1 < ranks && operation != ring_operation::all_gather; ++step) {
      const std::size_t at =
          ((rank + 2 * ranks - 1 - step) % ranks) * chunk;  // take the left one's chunk, add it to mine
      for (std::size_t i = 0; i < chunk; ++i) mine[at + i] += left[at + i];
      step_done.arrive_and_wait();
    }
    for (std::uint32_t step = 0; step + 1 < ranks && operation != ring_operation::reduce_scatter; ++step) {
      const std::size_t at =
          ((rank + 2 * ranks - step) % ranks) * chunk;  // copy the left one's finished chunk
      for (std::size_t i = 0; i < chunk; ++i) mine[at + i] = left[at + i];
      step_done.arrive_and_wait();
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < ranks; ++r) threads.emplace_back(rank_work, r);
  for (auto& thread : threads) thread.join();
  ring_outcome outcome;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double phases = operation == ring_operation::all_reduce ? 2 : 1;
  outcome.bytes_moved =
      phases * static_cast<double>(ranks - 1) * static_cast<double>(chunk * sizeof(std::uint64_t));
  outcome.wrong.assign(ranks, 0);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    const bool own_only = operation == ring_operation::reduce_scatter;
    const std::size_t from = own_only ? (r + 1) % ranks * chunk : 0;
    const std::size_t to = own_only ? from + chunk : chunk * ranks;
    for (std::size_t i = from; i < to; ++i)
      outcome.wrong[r] += buffers[r][i] == expected_and_filled.first[i] ? 0u : 1u;
  }
  return outcome;
}

}  // namespace busbar::probe
