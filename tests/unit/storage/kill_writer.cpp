// The child of kill_test: commits the seeded stream in groups and writes the last acknowledged revision to stdout, until it is
// killed. Usage: storage_kill_writer DIRECTORY SEED
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "storage/rocks_store.hpp"
#include "tests/unit/storage/model.hpp"

int main(int argc, char** argv) {
  using namespace busbar;
  if (argc != 3) return 2;
  const std::uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  storage::rocks_options options;
  options.directory = argv[1];
  options.wal_bytes = 256 << 10;  // many switches of the log, so that kills hit flushes too
  auto opened = storage::open_rocks_store(options);
  if (!opened.ok()) {
    std::cerr << opened.status() << '\n';
    return 1;
  }
  const auto log = storage::journal_log::open(std::move(*opened), storage::model::options());
  if (!log.ok()) {
    std::cerr << log.status() << '\n';
    return 1;
  }
  std::mt19937_64 random(seed);
  for (std::uint64_t next = (*log)->head().revision() + 1;;) {
    std::vector<std::shared_ptr<const core::journal_batch>> group;
    for (std::uint64_t left = 1 + random() % 8; left > 0; --left) {
      group.push_back(std::make_shared<core::journal_batch>(storage::model::batch(seed, next++)));
    }
    for (const auto& outcome : (*log)->commit_many(group)) {
      if (!outcome.ok()) return 1;
    }
    const std::uint64_t acknowledged = next - 1;
    if (write(STDOUT_FILENO, &acknowledged, sizeof(acknowledged)) != sizeof(acknowledged)) return 1;
  }
}
