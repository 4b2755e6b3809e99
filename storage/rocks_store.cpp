#include "storage/rocks_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "actors/core/errors.hpp"
#include "actors/core/log.hpp"
#include "storage/disk_room.hpp"
#include "storage/wal_check.hpp"

namespace busbar::storage {
namespace {

constexpr std::size_t cache_bytes = 8ULL << 20;
constexpr std::size_t event_buffer_bytes = 16ULL << 20;
constexpr std::size_t small_buffer_bytes = 2ULL << 20;
constexpr std::string_view probe_key = "probe";

rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view view(const rocksdb::Slice& bytes) { return {bytes.data(), bytes.size()}; }

// RocksDB tells of its background troubles on its own threads; only flags leave here.
class error_flags final : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* status) override {
    raised_.store(true);
    if (status->severity() >= rocksdb::Status::Severity::kFatalError || status->IsCorruption()) fatal_.store(true);
  }
  // We recover by probe(), on the writer's thread, when there is space again.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status, bool* auto_recovery) override {
    *auto_recovery = false;
  }
  bool raised() const { return raised_.load(); }
  bool fatal() const { return fatal_.load(); }
  void raise(bool fatally) {
    raised_.store(true);
    if (fatally) fatal_.store(true);
  }
  void lower() { raised_.store(false); }

 private:
  std::atomic<bool> raised_{false};
  std::atomic<bool> fatal_{false};
};

rocksdb::DBOptions database_options(const rocks_options& options) {
  rocksdb::DBOptions database;
  database.create_if_missing = true;
  database.create_missing_column_families = true;
  database.paranoid_checks = true;
  database.track_and_verify_wals_in_manifest = !options.logs_were_cut;
  database.avoid_flush_during_shutdown = false;
  database.max_total_wal_size = options.wal_bytes;
  database.db_write_buffer_size = options.wal_bytes;
  database.max_open_files = 256;
  database.max_file_opening_threads = 2;
  database.max_background_jobs = 2;
  database.keep_log_file_num = 4;
  database.max_log_file_size = 4ULL << 20;
  database.bytes_per_sync = 1ULL << 20;
  database.skip_stats_update_on_db_open = true;
  database.skip_checking_sst_file_sizes_on_db_open = true;
  database.stats_dump_period_sec = 0;
  database.stats_persist_period_sec = 0;
  // Only a last record that a crash cut off may be dropped; check_logs() has told it from damage before.
  database.wal_recovery_mode = options.logs_were_cut ? rocksdb::WALRecoveryMode::kPointInTimeRecovery
                                                     : rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  return database;
}

rocksdb::ColumnFamilyOptions family_options(family where, const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.cache_index_and_filter_blocks = true;
  const bool sequential = where == family::events || where == family::audit;
  if (!sequential) table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
  rocksdb::ColumnFamilyOptions column;
  column.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  column.write_buffer_size = sequential ? event_buffer_bytes : small_buffer_bytes;
  column.compression = rocksdb::kLZ4Compression;
  return column;
}

absl::Status text_of(const rocksdb::Status& status, std::string_view what, const std::string& directory) {
  const std::string text = fmt::format("{} the store in {}: {}", what, directory, status.ToString());
  if (status.IsCorruption()) return core::make_fault(core::fault::STORE_DAMAGED, text);
  return absl::UnavailableError(text);
}

// A file that is there to be given up: room for trip records on a disk that is full.
class ballast {
 public:
  ballast(std::string path, std::uint64_t bytes) : path_(std::move(path)), bytes_(bytes) {}

  void reserve() {
    if (bytes_ == 0 || held_) return;
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    held_ = ::posix_fallocate(file, 0, static_cast<off_t>(bytes_)) == 0 && ::fsync(file) == 0;
    ::close(file);
    if (!held_) ::unlink(path_.c_str());
  }
  // True if there was something to give.
  bool release() {
    if (!held_) return false;
    held_ = false;
    return ::unlink(path_.c_str()) == 0;
  }

 private:
  const std::string path_;
  const std::uint64_t bytes_;
  bool held_ = false;
};

class rocks_store final : public store {
 public:
  explicit rocks_store(rocks_options options)
      : options_(std::move(options)), ballast_(options_.directory + "/ballast", options_.ballast_bytes) {}
  ~rocks_store() override { close().IgnoreError(); }  // nobody is left to tell; everything acknowledged is synced

  absl::Status open();
  absl::Status write(const store_write& batch) override;
  absl::StatusOr<std::optional<std::string>> get(family where, std::string_view key) const override;
  absl::Status scan(family where, std::string_view from, std::string_view to, const visitor& visit) const override;
  absl::Status scan_back(family where, std::string_view from, std::string_view to,
                         const visitor& visit) const override;
  store_health health() const override;
  absl::Status probe() override;
  absl::Status close() override;
  absl::Status checkpoint(const std::string& directory);

 private:
  rocksdb::ColumnFamilyHandle* column(family where) const { return columns_[static_cast<std::size_t>(where)]; }
  rocksdb::Status apply(const store_write& batch);
  rocksdb::Status apply_with_ballast(const store_write& batch);
  absl::Status admit(const store_write& batch);
  absl::Status note_failure(const rocksdb::Status& status);
  absl::Status read_only(std::string_view why) const;
  std::uint64_t free_now() const {
    return options_.free_bytes ? options_.free_bytes(options_.directory) : free_bytes_at(options_.directory);
  }

  const rocks_options options_;
  ballast ballast_;                                  // writer's thread
  std::shared_ptr<error_flags> flags_ = std::make_shared<error_flags>();
  std::atomic<bool> short_of_space_{false};          // below stop_bytes: ordinary writes are refused
  std::atomic<bool> shedding_{false};
  std::unique_ptr<rocksdb::Env> environment_;        // outlives the database
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<rocksdb::ColumnFamilyHandle*> columns_;  // in the order of `families`
};

absl::Status rocks_store::open() {
  if (absl::Status room = check_room(options_.directory, options_.free_bytes); !room.ok()) return room;
  std::error_code error;
  std::filesystem::create_directories(options_.directory, error);
  if (error) return absl::UnavailableError(fmt::format("make {}: {}", options_.directory, error.message()));
  rocksdb::DBOptions database = database_options(options_);
  database.listeners.push_back(flags_);
  if (options_.file_system != nullptr) {
    environment_ = rocksdb::NewCompositeEnv(options_.file_system);
    database.env = environment_.get();
  }
  const auto cache = rocksdb::NewLRUCache(cache_bytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> wanted;
  for (const family where : families) {
    wanted.emplace_back(std::string(name_of(where)), family_options(where, cache));
  }
  wanted.emplace_back(rocksdb::kDefaultColumnFamilyName, family_options(family::meta, cache));
  if (!options_.logs_were_cut) {
    if (absl::Status whole = check_logs(options_.directory); !whole.ok()) return whole;
  }
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(database, options_.directory, wanted, &columns_, &opened);
  if (status.IsIOError() && status.ToString().find("/LOCK") != std::string::npos) {
    return absl::AlreadyExistsError(fmt::format(
        "the store in {} is open in another process; stop that one first, or use another folder", options_.directory));
  }
  if (!status.ok()) return text_of(status, "open", options_.directory);
  database_.reset(opened);
  ballast_.reserve();
  return absl::OkStatus();
}

absl::Status rocks_store::read_only(std::string_view why) const {
  return core::make_fault(core::fault::STORE_READ_ONLY,
                          fmt::format("write to the store in {}: {}; {} bytes free, nothing was written",
                                      options_.directory, why, free_now()));
}

// Whether to try at all.
absl::Status rocks_store::admit(const store_write& batch) {
  if (database_ == nullptr) return absl::UnavailableError("the store is closed");
  if (flags_->fatal()) {
    return core::make_fault(core::fault::STORE_DAMAGED,
                            fmt::format("the store in {} stopped for good after an error of the disk; restart to see "
                                        "what it holds", options_.directory));
  }
  const std::uint64_t free = free_now();
  shedding_.store(free < options_.low_water_bytes);
  if (free < options_.stop_bytes) short_of_space_.store(true);
  if (batch.safety) return absl::OkStatus();
  if (flags_->raised()) return read_only("it refused an earlier write and has not recovered");
  if (short_of_space_.load()) return read_only("the disk is nearly full");
  return absl::OkStatus();
}

rocksdb::Status rocks_store::apply(const store_write& batch) {
  rocksdb::WriteBatch rows;
  for (const store_write::operation& operation : batch.operations()) {
    rocksdb::Status staged;
    switch (operation.what) {
      case store_write::action::put:
        staged = rows.Put(column(operation.where), slice(operation.key), slice(operation.value));
        break;
      case store_write::action::erase: staged = rows.Delete(column(operation.where), slice(operation.key)); break;
      case store_write::action::erase_range:
        if (operation.key < operation.value) {
          staged = rows.DeleteRange(column(operation.where), slice(operation.key), slice(operation.value));
        }
        break;
    }
    if (!staged.ok()) return staged;
  }
  rocksdb::WriteOptions synced;
  synced.sync = true;
  return database_->Write(synced, &rows);
}

// A trip's record on a full disk: give up the ballast, make RocksDB forget its error, once.
rocksdb::Status rocks_store::apply_with_ballast(const store_write& batch) {
  rocksdb::Status status = flags_->raised() ? rocksdb::Status::NoSpace() : apply(batch);
  if (!status.IsNoSpace() || !ballast_.release()) return status.ok() ? status : apply(batch);
  core::log_warning("store_ballast_released", {{"directory", options_.directory}});
  if (const rocksdb::Status resumed = database_->Resume(); !resumed.ok()) return resumed;
  flags_->lower();
  return apply(batch);
}

absl::Status rocks_store::note_failure(const rocksdb::Status& status) {
  // No space left can be waited out. Any other failed write or sync leaves unknown what is on the disk: it is not retried.
  const bool recoverable = status.IsNoSpace();
  flags_->raise(!recoverable);
  if (recoverable) return read_only(status.ToString());
  core::log_error("store_failed", {{"directory", options_.directory}, {"error", status.ToString()}});
  return core::make_fault(core::fault::STORE_DAMAGED,
                          fmt::format("write to the store in {}: {}", options_.directory, status.ToString()));
}

absl::Status rocks_store::write(const store_write& batch) {
  if (const absl::Status admitted = admit(batch); !admitted.ok()) return admitted;
  const rocksdb::Status status = batch.safety ? apply_with_ballast(batch) : apply(batch);
  return status.ok() ? absl::OkStatus() : note_failure(status);
}

absl::StatusOr<std::optional<std::string>> rocks_store::get(family where, std::string_view key) const {
  if (database_ == nullptr) return absl::UnavailableError("the store is closed");
  std::string value;
  const rocksdb::Status status = database_->Get(rocksdb::ReadOptions(), column(where), slice(key), &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return text_of(status, "read", options_.directory);
  return std::optional<std::string>(std::move(value));
}

absl::Status rocks_store::scan(family where, std::string_view from, std::string_view to,
                               const visitor& visit) const {
  if (database_ == nullptr) return absl::UnavailableError("the store is closed");
  rocksdb::ReadOptions reading;
  const rocksdb::Slice end = slice(to);
  if (!to.empty()) reading.iterate_upper_bound = &end;
  const std::unique_ptr<rocksdb::Iterator> row(database_->NewIterator(reading, column(where)));
  for (row->Seek(slice(from)); row->Valid(); row->Next()) {
    if (!visit(view(row->key()), view(row->value()))) break;
  }
  return row->status().ok() ? absl::OkStatus() : text_of(row->status(), "read", options_.directory);
}

absl::Status rocks_store::scan_back(family where, std::string_view from, std::string_view to,
                                    const visitor& visit) const {
  if (database_ == nullptr) return absl::UnavailableError("the store is closed");
  rocksdb::ReadOptions reading;
  const rocksdb::Slice first = slice(from);
  const rocksdb::Slice end = slice(to);
  if (!from.empty()) reading.iterate_lower_bound = &first;
  if (!to.empty()) reading.iterate_upper_bound = &end;
  const std::unique_ptr<rocksdb::Iterator> row(database_->NewIterator(reading, column(where)));
  for (row->SeekToLast(); row->Valid(); row->Prev()) {
    if (!visit(view(row->key()), view(row->value()))) break;
  }
  return row->status().ok() ? absl::OkStatus() : text_of(row->status(), "read", options_.directory);
}

store_health rocks_store::health() const {
  if (flags_->fatal()) return store_health::failed;
  if (flags_->raised() || short_of_space_.load()) return store_health::read_only;
  return shedding_.load() ? store_health::shedding : store_health::serving;
}

absl::Status rocks_store::probe() {
  if (database_ == nullptr) return absl::UnavailableError("the store is closed");
  if (flags_->fatal()) return admit({});
  if (free_now() < options_.stop_bytes) return read_only("the disk is still nearly full");
  if (const rocksdb::Status resumed = database_->Resume(); !resumed.ok()) return read_only(resumed.ToString());
  flags_->lower();
  store_write proof;
  proof.put(family::meta, std::string(probe_key), {});
  if (const rocksdb::Status status = apply(proof); !status.ok()) return note_failure(status);
  // What a refused write may have left in the log must not come back: with all flushed, that log is dropped.
  if (const rocksdb::Status flushed = database_->Flush(rocksdb::FlushOptions(), columns_); !flushed.ok()) {
    return note_failure(flushed);
  }
  short_of_space_.store(false);
  ballast_.reserve();
  return absl::OkStatus();
}

absl::Status rocks_store::close() {
  if (database_ == nullptr) return absl::OkStatus();
  for (rocksdb::ColumnFamilyHandle* handle : columns_) database_->DestroyColumnFamilyHandle(handle);
  columns_.clear();
  const rocksdb::Status status = database_->Close();
  database_.reset();
  return status.ok() ? absl::OkStatus() : text_of(status, "close", options_.directory);
}

absl::Status rocks_store::checkpoint(const std::string& directory) {
  if (database_ == nullptr) return absl::UnavailableError("the store is closed");
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(database_.get(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> owned(made);
  if (status.ok()) status = owned->CreateCheckpoint(directory);
  return status.ok() ? absl::OkStatus() : text_of(status, "copy", options_.directory);
}

}  // namespace

absl::StatusOr<std::unique_ptr<store>> open_rocks_store(rocks_options options) {
  auto opened = std::make_unique<rocks_store>(std::move(options));
  if (const absl::Status done = opened->open(); !done.ok()) return done;
  return opened;
}

absl::Status checkpoint_rocks_store(store& source, const std::string& directory) {
  auto* rocks = dynamic_cast<rocks_store*>(&source);
  if (rocks == nullptr) return absl::InvalidArgumentError("only a store on disk can be copied");
  return rocks->checkpoint(directory);
}

}  // namespace busbar::storage
