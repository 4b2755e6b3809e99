// kill -9 at seeded moments: the reopened store holds every acknowledged batch, equals the model, and goes on.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "storage/rocks_store.hpp"
#include "tests/unit/storage/model.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

extern char** environ;

namespace busbar::storage {
namespace {

constexpr std::uint64_t largest_group = 8;

// Runs the writer until it has acknowledged `enough` more and a little longer, kills it; the last revision it acknowledged.
std::uint64_t run_and_kill(const std::string& directory, std::uint64_t seed, std::uint64_t enough) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  const std::string seed_text = std::to_string(seed);
  const std::array<const char*, 4> arguments = {KILL_WRITER, directory.c_str(), seed_text.c_str(), nullptr};
  pid_t child = 0;
  const int spawned = posix_spawn(&child, KILL_WRITER, &actions, nullptr,
                                  const_cast<char* const*>(arguments.data()), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  EXPECT_EQ(spawned, 0);
  std::uint64_t acknowledged = 0;
  std::uint64_t word = 0;
  for (std::uint64_t seen = 0; seen < enough && read(ends[0], &word, sizeof(word)) == sizeof(word); ++seen) {
    acknowledged = word;
  }
  kill(child, SIGKILL);
  // What it still acknowledged before the kill took hold counts as well.
  while (read(ends[0], &word, sizeof(word)) == sizeof(word)) acknowledged = word;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
  return acknowledged;
}

TEST(kill_9, holds_every_acknowledged_batch_and_equals_the_model) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const temporary_folder folder;
    std::mt19937_64 random(seed);
    for (int life = 0; life < 3; ++life) {
      const std::uint64_t acknowledged = run_and_kill(folder.file("store"), seed, 1 + random() % 150);
      rocks_options options;
      options.directory = folder.file("store");
      auto opened = open_rocks_store(options);
      ASSERT_TRUE(opened.ok()) << opened.status();
      const auto log = journal_log::open(std::move(*opened), model::options());
      ASSERT_TRUE(log.ok()) << log.status();
      const std::uint64_t held = (*log)->head().revision();
      EXPECT_GE(held, acknowledged);
      EXPECT_LE(held, acknowledged + largest_group);
      const auto found = model::held_by(**log);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(*found, model::expected(seed, held));
    }
  }
}

}  // namespace
}  // namespace busbar::storage
