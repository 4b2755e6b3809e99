// The latest reading of every point that this daemon knows, by the point's name ("r01/c07/gpu0/power").
// Readings are not state: nothing here is journaled, moves a revision or outlives the process. Safe from any
// thread; writers come with batches, a reader gets copies.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace busbar::core {

enum class reading_quality { unknown, good, stale, bad };  // numbers are those of busbar.v1.Quality

struct reading {
  std::optional<double> value;  // absent: not known, whatever the reason
  std::string unit;             // UCUM: L/min, kPa, Cel, W, %
  reading_quality quality = reading_quality::unknown;
  std::string source;               // what gave it: a URI, a register, an agent
  std::int64_t source_wall_ns = 0;  // as the source stamped it; 0: it gave no time
  std::int64_t received_wall_ns = 0;
};

struct named_reading {
  std::string name;
  reading what;
};

class reading_board {
 public:
  // Each replaces the one of its name. A value that is not finite is put as bad, without a value.
  void put(std::span<const named_reading> batch);
  // What came before the given wall time becomes stale; its value stays to be seen as such.
  void mark_stale(std::string_view prefix, std::int64_t before_wall_ns);
  void forget(std::string_view prefix);

  std::optional<reading> find(std::string_view name) const;
  std::vector<named_reading> under(std::string_view prefix) const;

  // What changed after the version, newest value only.
  struct changes {
    std::uint64_t version = 0;
    std::vector<named_reading> points;
  };
  changes since(std::uint64_t version, std::span<const std::string> prefixes) const;  // no prefix: all
  std::size_t size() const;

 private:
  struct entry {
    reading what;
    std::uint64_t version = 0;  // of its last change
  };
  using entries = std::map<std::string, entry, std::less<>>;
  void store(entry& into, reading what);
  static bool matches(std::string_view name, std::span<const std::string> prefixes);

  mutable std::mutex guard_;
  std::uint64_t version_ = 0;
  entries points_;
};

}  // namespace busbar::core
