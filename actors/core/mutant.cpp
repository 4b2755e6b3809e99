#include "actors/core/mutant.hpp"

#include <string>

namespace busbar::core {

#ifdef BUSBAR_MUTANTS
namespace {
std::string& active() {
  static std::string name;
  return name;
}
}  // namespace

void switch_mutant(std::string_view name) { active() = name; }
bool mutant_is_on(std::string_view name) { return !active().empty() && active() == name; }
#endif

}  // namespace busbar::core
