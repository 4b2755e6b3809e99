// The files of a site (kinds Manifest, Sku, Baseline, Suite, Plant) into one resolved RackSpec a manifest. Strict,
// and all errors at once. Pure: the caller brings the files' contents.
#pragma once

#include <string>
#include <vector>

#include "actors/manifest/spec_error.hpp"
#include "busbar/journal/plant.pb.h"
#include "busbar/journal/spec.pb.h"

namespace busbar::manifest {

struct read_result {
  std::vector<journal::RackSpec> racks;  // in the order of their manifests; empty when there is any error
  std::vector<journal::PlantSpec> plants;  // the same
  std::vector<spec_error> errors;
};

// A file may hold several documents. A baseline names suites by path: as given, beside the baseline, or by
// the path's end.
read_result read_spec(const std::vector<source_file>& files);

// SHA-256, hex, over the spec's canonical bytes without its digest.
std::string digest_of(const journal::RackSpec& spec);

}  // namespace busbar::manifest
