// What is wrong with a file, where: the reader reports all of it at once.
#pragma once

#include <string>
#include <vector>

namespace busbar::manifest {

struct source_file {
  std::string path;  // as errors shall name it
  std::string content;
};

struct spec_error {
  std::string file;
  std::string key_path;  // members[3].bmc_mac; empty: the document as a whole
  std::string message;

  bool operator==(const spec_error&) const = default;
};

// "manifests/r01.yaml: members[3].bmc_mac: is not a MAC address ..."
std::string to_text(const spec_error& error);

}  // namespace busbar::manifest
