// Files and folders of a command line, as ApplyManifest takes them.
#pragma once

#include <string>
#include <vector>

#include "busbar/v1/busbar.pb.h"

namespace busbar::cli {

// A folder gives every *.yaml and *.yml below it, with paths relative to it; a file goes by the path given.
// Sorted.
std::vector<v1::ManifestFile> read_manifest_files(const std::vector<std::string>& paths,
                                                  std::vector<std::string>& errors);

}  // namespace busbar::cli
