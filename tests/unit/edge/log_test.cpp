#include "actors/core/log.hpp"

#include <gtest/gtest.h>

namespace busbar::core {
namespace {

TEST(log, writes_keys_and_values) {
  EXPECT_EQ(render_log_line("store_opened", {{"path", "/var/lib"}, {"revision", 42}, {"fresh", true}}),
            "event=store_opened path=/var/lib revision=42 fresh=true");
}

TEST(log, foreign_text_forges_neither_field_nor_line) {
  EXPECT_EQ(render_log_line("seen", {{"serial", "A\nevent=leak level=\"x\""}}),
            "event=seen serial=\"A\\x0aevent=leak level=\\\"x\\\"\"");
  EXPECT_EQ(render_log_line("seen", {{"serial", ""}}), "event=seen serial=\"\"");
}

}  // namespace
}  // namespace busbar::core
