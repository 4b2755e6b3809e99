// What no single field can show: rows that contradict one another, counts, names that lead nowhere. Pure.
#pragma once

#include <string>
#include <vector>

#include "actors/manifest/spec_error.hpp"
#include "busbar/journal/spec.pb.h"

namespace busbar::manifest {

// Each appends to errors; file names the document's file.
void check_manifest(const journal::Manifest& manifest, const std::string& file,
                    std::vector<spec_error>& errors);
void check_sku(const journal::Sku& sku, const std::string& file, std::vector<spec_error>& errors);
void check_baseline(const journal::Baseline& baseline, const std::string& file,
                    std::vector<spec_error>& errors);
void check_suite(const journal::Suite& suite, const std::string& file, std::vector<spec_error>& errors);

// A manifest against the SKU it names: how many members of each kind.
void check_members_against_sku(const journal::Manifest& manifest, const journal::Sku& sku,
                               const std::string& file, std::vector<spec_error>& errors);
// A suite that a rack of this SKU runs: a metric with limits by SKU must have one for it.
void check_suite_against_sku(const journal::Suite& suite, const std::string& sku, const std::string& file,
                             std::vector<spec_error>& errors);

// "compute_tray" for COMPUTE_TRAY: the word of the files.
std::string kind_name(journal::MemberKind kind);

}  // namespace busbar::manifest
