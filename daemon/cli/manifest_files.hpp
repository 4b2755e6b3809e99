// Files and folders of a command line, as ApplyManifest takes them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "busbar/v1/busbar.pb.h"

namespace busbar::cli {

// Of all files of one command, with their names: what a daemon takes in one request.
constexpr std::size_t manifest_bytes = std::size_t{16} << 20U;

// A folder gives every *.yaml and *.yml below it, with paths relative to it (names that begin with a dot are left out); a file
// goes by the path given. Sorted. Every file is a regular one and holds UTF-8 text: what is not, is too large, or is a link
// to a folder is an error with its path, and then the command sends nothing.
std::vector<v1::ManifestFile> read_manifest_files(const std::vector<std::string>& paths,
                                                  std::vector<std::string>& errors);

}  // namespace busbar::cli
