// The machine's file system, counting every sync of a file, the log's and the background's alike.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace busbar::bench {

class syncs_counted final : public rocksdb::FileSystemWrapper {
 public:
  syncs_counted() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "syncs_counted"; }
  std::uint64_t syncs() const { return syncs_.load(); }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSWritableFile> real;
    const rocksdb::IOStatus made = target()->NewWritableFile(name, options, &real, debug);
    if (made.ok()) *result = std::make_unique<file>(std::move(real), syncs_);
    return made;
  }

 private:
  class file final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    file(std::unique_ptr<rocksdb::FSWritableFile> real, std::atomic<std::uint64_t>& syncs)
        : FSWritableFileOwnerWrapper(std::move(real)), syncs_(syncs) {}
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
      syncs_.fetch_add(1);
      return target()->Sync(options, debug);
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
      syncs_.fetch_add(1);
      return target()->Fsync(options, debug);
    }

   private:
    std::atomic<std::uint64_t>& syncs_;
  };

  std::atomic<std::uint64_t> syncs_{0};
};

}  // namespace busbar::bench
