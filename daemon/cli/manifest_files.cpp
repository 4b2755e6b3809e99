#include "daemon/cli/manifest_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace busbar::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_files = 10'000;

void add(const fs::path& path, const std::string& name, std::vector<v1::ManifestFile>& files,
         std::vector<std::string>& errors) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  if (!in || !(content << in.rdbuf())) {
    errors.push_back(fmt::format("{}: cannot be read", path.string()));
    return;
  }
  v1::ManifestFile& file = files.emplace_back();
  file.set_path(name);
  file.set_content(content.str());
}

void add_folder(const fs::path& folder, std::vector<v1::ManifestFile>& files,
                std::vector<std::string>& errors) {
  std::error_code error;
  const std::size_t before = files.size();
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string extension = entry->path().extension().string();
    if ((extension != ".yaml" && extension != ".yml") || !entry->is_regular_file(error)) continue;
    add(entry->path(), entry->path().lexically_relative(folder).string(), files, errors);
    if (files.size() > most_files) break;
  }
  if (error) errors.push_back(fmt::format("{}: {}", folder.string(), error.message()));
  if (files.size() > most_files)
    errors.push_back(fmt::format("{}: more than {} files", folder.string(), most_files));
  if (files.size() == before) errors.push_back(fmt::format("{}: holds no *.yaml", folder.string()));
}

}  // namespace

std::vector<v1::ManifestFile> read_manifest_files(const std::vector<std::string>& paths,
                                                  std::vector<std::string>& errors) {
  std::vector<v1::ManifestFile> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      add_folder(path, files, errors);
    } else {
      add(path, path, files, errors);
    }
  }
  if (paths.empty()) errors.emplace_back("give a folder or files");
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path() < b.path(); });
  return files;
}

}  // namespace busbar::cli
