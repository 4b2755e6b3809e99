// The arithmetic whose results every engine must agree on bit by bit: whole numbers only, so that neither the
// order of sums nor the width of a float can change them. A device that computes wrongly shows another hash.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace busbar::probe {

// Small and seeded (SplitMix64's constants): the same sequence everywhere.
class sequence {
 public:
  explicit sequence(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();

 private:
  std::uint64_t state_;
};

// FNV-1a over 64 bits: enough to tell two results apart; it guards nothing against malice.
class result_hash {
 public:
  void add(std::uint64_t value);
  std::string hex() const;

 private:
  std::uint64_t state_ = 14695981039346656037ull;
};

// Hash of C = A x B over size x size matrices of signed bytes (from `seed`), summed in 32 bits as tensor
// cores do for int8.
std::string multiply_and_hash(std::uint32_t size, std::uint64_t seed);

struct training_outcome {
  double loss_at_200 = 0;  // mean loss over the data after 200 steps
  std::string curve_hash;  // of the loss at each step, in fixed point
};
// A two-layer network (8-16-4, ReLU) trained on seeded data by full-batch descent, 16.16 fixed point
// throughout.
training_outcome train(std::uint64_t seed, std::uint32_t steps);

enum class ring_operation { all_reduce, reduce_scatter, all_gather };

struct ring_outcome {
  std::vector<std::uint64_t>
      wrong;               // by rank: elements of its part of the result that are not what they must be
  double bytes_moved = 0;  // by each rank
  double seconds = 0;      // of the exchange, by the steady clock
};
// Over `ranks` buffers in a ring, a thread a rank; an all-reduce is a reduce-scatter and then an all-gather.
ring_outcome run_ring(ring_operation operation, std::uint32_t ranks, std::uint32_t elements,
                      std::uint64_t seed);

}  // namespace busbar::probe
