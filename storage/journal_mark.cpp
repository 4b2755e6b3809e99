#include "storage/journal_mark.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "actors/core/errors.hpp"
#include "actors/core/regular_file.hpp"
#include "storage/evidence.hpp"

namespace busbar::storage {
namespace {

constexpr const char* way_out =
    "nothing was started or changed; put the folder or its backup back, or, to begin with an empty store, start "
    "once with --accept-empty-store";

// Empty: no mark, a first start or a store of a release that made none.
absl::StatusOr<std::string> read_mark(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, ignored))) return std::string();
  auto text = core::read_regular_file(file, core::small_file_bytes);
  if (!text.ok()) return text;
  text->erase(text->find_last_not_of(" \n") + 1);
  return text;
}

}  // namespace

absl::Status check_store_is_there(const std::string& mark_file, const std::string& store_directory) {
  const auto marked = read_mark(mark_file);
  if (!marked.ok()) return marked.status();
  std::error_code ignored;
  // RocksDB's CURRENT names its manifest: without it there is no database, whatever else lies in the folder.
  const bool there = std::filesystem::exists(store_directory + "/CURRENT", ignored);
  if (marked->empty() || there) return absl::OkStatus();
  return core::make_fault(core::fault::STORE_MISSING,
                          fmt::format("{} holds no store, but {} says that journal {} was there; {}", store_directory,
                                      mark_file, *marked, way_out));
}

absl::Status check_store_is_ours(const std::string& mark_file, const journal_log& log) {
  const auto marked = read_mark(mark_file);
  if (!marked.ok()) return marked.status();
  if (marked->empty() || log.comes_from(*marked)) return absl::OkStatus();
  return core::make_fault(core::fault::STORE_MISSING,
                          fmt::format("the store holds journal {}, but {} says that journal {} was there; {}",
                                      log.head().journal_id(), mark_file, *marked, way_out));
}

absl::Status mark_journal(const std::string& mark_file, const journal_log& log) {
  const std::string id = log.head().journal_id();
  const auto marked = read_mark(mark_file);
  if (marked.ok() && *marked == id) return absl::OkStatus();
  return replace_synced(mark_file, id + "\n");
}

}  // namespace busbar::storage
