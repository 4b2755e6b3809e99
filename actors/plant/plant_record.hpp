// Where a plant's declaration stands in the journal: a record, since it is no resource itself.
#pragma once

#include <string_view>

namespace busbar::plant {

constexpr std::string_view spec_record = "plant/spec";

}  // namespace busbar::plant
