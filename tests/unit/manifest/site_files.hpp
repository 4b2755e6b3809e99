// A small site in files, read from the test's data, and ways to spoil it.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "actors/manifest/spec_reader.hpp"

namespace busbar::manifest::testing {

inline std::vector<source_file> site_files() {
  std::vector<source_file> files;
  for (const char* path : {"manifests/r01.yaml", "sku.yaml", "baseline.yaml", "suites/node-quick.yaml",
                           "suites/rack-quick.yaml"}) {
    std::ifstream in(std::string(BUSBAR_TEST_DATA) + "/" + path);
    std::stringstream content;
    content << in.rdbuf();
    files.push_back({path, content.str()});
  }
  return files;
}

inline std::vector<source_file> site_files_with(const std::string& path, const std::string& text,
                                                const std::string& other) {
  std::vector<source_file> files = site_files();
  for (source_file& file : files) {
    if (file.path != path) continue;
    const std::size_t place = file.content.find(text);
    EXPECT_NE(place, std::string::npos) << text;
    if (place != std::string::npos) file.content.replace(place, text.size(), other);
  }
  return files;
}

inline std::vector<std::string> texts(const std::vector<spec_error>& errors) {
  std::vector<std::string> result;
  for (const spec_error& error : errors) result.push_back(to_text(error));
  return result;
}

}  // namespace busbar::manifest::testing
