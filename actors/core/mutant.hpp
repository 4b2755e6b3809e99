// Planted defects. Each names one thing that must never be done; tests/sim/mutants switches one on at a time and expects an
// invariant to find it. In release builds the switch is constexpr false and the defect does not exist in the program.
#pragma once

#include <string_view>

namespace busbar::core {

#ifdef BUSBAR_MUTANTS
// Owner: tests, on one thread, before the system under test starts. An empty name switches every mutant off.
void switch_mutant(std::string_view name);
bool mutant_is_on(std::string_view name);
#else
constexpr bool mutant_is_on(std::string_view) { return false; }
#endif

}  // namespace busbar::core

#define BUSBAR_MUTANT(name) (::busbar::core::mutant_is_on(#name))
