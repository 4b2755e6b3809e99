// A disk that fails at the n-th write or sync of the log, and heals when told.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

namespace busbar::storage {

enum class disk_fault { none, no_space, io_error, short_write, failed_sync };

class faulty_file_system final : public rocksdb::FileSystemWrapper {
 public:
  faulty_file_system() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "faulty_file_system"; }

  // From the n-th call on (1 = the next) until heal(). failed_sync counts syncs, the others writes.
  void fail(disk_fault fault, int at) {
    left_.store(at);
    fault_.store(fault);
  }
  void heal() { fault_.store(disk_fault::none); }
  bool failed() const { return failed_.load(); }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSWritableFile> real;
    const rocksdb::IOStatus made = target()->NewWritableFile(name, options, &real, debug);
    if (made.ok()) *result = std::make_unique<file>(std::move(real), *this);
    return made;
  }

 private:
  class file final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    file(std::unique_ptr<rocksdb::FSWritableFile> real, faulty_file_system& disk)
        : FSWritableFileOwnerWrapper(std::move(real)), disk_(disk) {}
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      if (!disk_.strikes(false)) return target()->Append(data, options, debug);
      return disk_.refuse(*target(), data, options, debug);
    }
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             const rocksdb::DataVerificationInfo& info, rocksdb::IODebugContext* debug) override {
      if (!disk_.strikes(false)) return target()->Append(data, options, info, debug);
      return disk_.refuse(*target(), data, options, debug);
    }
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
      return disk_.strikes(true) ? rocksdb::IOStatus::IOError("sync failed (injected)") : target()->Sync(options, debug);
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
      return disk_.strikes(true) ? rocksdb::IOStatus::IOError("sync failed (injected)") : target()->Fsync(options, debug);
    }

   private:
    faulty_file_system& disk_;
  };

  bool strikes(bool is_sync) {
    const disk_fault fault = fault_.load();
    if (fault == disk_fault::none || is_sync != (fault == disk_fault::failed_sync)) return false;
    if (left_.fetch_sub(1) > 1) return false;
    failed_.store(true);
    return true;
  }
  rocksdb::IOStatus refuse(rocksdb::FSWritableFile& target, const rocksdb::Slice& data,
                           const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) {
    if (fault_.load() == disk_fault::io_error) return rocksdb::IOStatus::IOError("write failed (injected)");
    if (fault_.load() == disk_fault::short_write) {
      const rocksdb::IOStatus part = target.Append({data.data(), data.size() / 2}, options, debug);
      if (!part.ok()) return part;
    }
    return rocksdb::IOStatus::NoSpace("disk full (injected)");
  }

  std::atomic<disk_fault> fault_{disk_fault::none};
  std::atomic<int> left_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace busbar::storage
