#include "actors/core/mutant.hpp"

#include <gtest/gtest.h>

namespace busbar::core {
namespace {

#ifdef BUSBAR_MUTANTS

TEST(mutant, is_off_until_it_is_switched_on_and_only_one_is_on) {
  EXPECT_FALSE(BUSBAR_MUTANT(unknown_reads_dry));
  switch_mutant("unknown_reads_dry");
  EXPECT_TRUE(BUSBAR_MUTANT(unknown_reads_dry));
  EXPECT_FALSE(BUSBAR_MUTANT(unknown_reads));
  switch_mutant("answered_before_sync");
  EXPECT_FALSE(BUSBAR_MUTANT(unknown_reads_dry));
  EXPECT_TRUE(BUSBAR_MUTANT(answered_before_sync));
  switch_mutant("");
  EXPECT_FALSE(BUSBAR_MUTANT(answered_before_sync));
  EXPECT_FALSE(mutant_is_on(""));
}

#else

TEST(mutant, does_not_exist_in_a_build_without_them) {
  static_assert(!BUSBAR_MUTANT(unknown_reads_dry));
  EXPECT_FALSE(mutant_is_on("unknown_reads_dry"));
}

#endif

}  // namespace
}  // namespace busbar::core
