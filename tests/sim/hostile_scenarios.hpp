// A rack against which several things go wrong at once, and a daemon that dies at a commit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/sim/scenarios.hpp"

namespace busbar::test_support {

// Three to six troubles drawn by the seed, on trays drawn by the seed, at once. Every operation ends by its
// deadline with a row for every declared member, and what nobody knows is not called passed.
std::optional<std::string> hostile_rack(rack_world& world);

// A bring-up whose daemon is killed once the journal holds `commit` commits more than at its start; it must
// end in production. commits: how many there were in all.
std::optional<std::string> crash_after_commit(rack_world& world, std::uint64_t commit,
                                              std::uint64_t& commits);

}  // namespace busbar::test_support
