// What a document of kind Plant must hold beyond its keys.
#pragma once

#include <string>
#include <vector>

#include "actors/manifest/spec_error.hpp"
#include "busbar/journal/plant.pb.h"

namespace busbar::manifest {

void check_plant_spec(const journal::PlantSpec& plant, const std::string& file,
                      std::vector<spec_error>& errors);

// SHA-256, hex, over the canonical bytes without the digest.
std::string digest_of(const journal::PlantSpec& plant);

}  // namespace busbar::manifest
