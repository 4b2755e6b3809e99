#include "daemon/cli/manifest_files.hpp"

#include <absl/status/status.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "actors/core/regular_file.hpp"
#include "daemon/cli/plain_text.hpp"

namespace busbar::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_files = 10'000;
constexpr int deepest = 32;  // folders in folders

class reader {
 public:
  explicit reader(std::vector<std::string>& errors) : errors_(errors) {}

  // name: what the daemon calls it.
  void add(const fs::path& path, const std::string& name) {
    if (over_) return;
    const std::string where = shown(path.string());
    // What is left of the allowance: a file that exceeds it is not read at all.
    const std::size_t left = manifest_bytes - std::min(manifest_bytes, used_ + name.size());
    absl::StatusOr<std::string> content = core::read_regular_file(path.string(), left);
    if (!content.ok()) {
      std::error_code ignored;
      over_ = fs::is_regular_file(path, ignored) && fs::file_size(path, ignored) > left;
      return fail(over_ ? fmt::format("{}: with it the files are larger than {} MiB, which is the most that one command "
                                      "sends", where, manifest_bytes >> 20U)
                        : shown(std::string(content.status().message())));
    }
    if (not_text_at(name) != std::string_view::npos) return fail(where + ": its name is not UTF-8 text");
    if (const std::size_t place = not_text_at(*content); place != std::string_view::npos)
      return fail(fmt::format("{}: is not UTF-8 text: byte {} of {}", where, place + 1, content->size()));
    used_ += name.size() + content->size();
    v1::ManifestFile& file = files_.emplace_back();
    file.set_path(name);
    file.set_content(*std::move(content));
    if (files_.size() == most_files + 1) {
      fail(fmt::format("{}: more than {} files", where, most_files));
      over_ = true;
    }
  }

  void add_folder(const fs::path& folder) {
    const std::size_t before = files_.size() + errors_.size();
    walk(folder, folder, 0);
    if (files_.size() + errors_.size() == before)
      fail(fmt::format("{}: holds no *.yaml", shown(folder.string())));
  }

  std::vector<v1::ManifestFile> take() { return std::move(files_); }

 private:
  void fail(std::string error) { errors_.push_back(std::move(error)); }

  void walk(const fs::path& top, const fs::path& folder, int depth) {
    std::error_code error;
    if (depth > deepest) return fail(fmt::format("{}: more than {} folders deep", shown(folder.string()), deepest));
    std::vector<fs::path> entries;
    for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      entries.push_back(entry->path());
    }
    if (error) return fail(fmt::format("{}: {}", shown(folder.string()), error.message()));
    std::sort(entries.begin(), entries.end());
    for (const fs::path& path : entries) {
      if (over_) return;
      if (path.filename().string().starts_with('.')) continue;  // .git, an editor's own, a mount's versions
      const bool is_yaml = path.extension() == ".yaml" || path.extension() == ".yml";
      const bool is_folder = fs::is_directory(path, error);
      if (is_folder && fs::is_symlink(path, error)) {
        fail(fmt::format("{}: is a link to a folder, which is not followed; give that folder itself",
                         shown(path.string())));
      } else if (is_folder) {
        walk(top, path, depth + 1);
      } else if (is_yaml) {
        add(path, path.lexically_relative(top).string());
      }
    }
  }

  std::vector<std::string>& errors_;
  std::vector<v1::ManifestFile> files_;
  std::size_t used_ = 0;
  bool over_ = false;  // said once; nothing more is read
};

}  // namespace

std::vector<v1::ManifestFile> read_manifest_files(const std::vector<std::string>& paths,
                                                  std::vector<std::string>& errors) {
  reader files(errors);
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      files.add_folder(path);
    } else {
      files.add(path, path);
    }
  }
  if (paths.empty()) errors.emplace_back("give a folder or files");
  std::vector<v1::ManifestFile> found = files.take();
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.path() < b.path(); });
  return found;
}

}  // namespace busbar::cli
