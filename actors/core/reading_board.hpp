// The latest reading of every point that this daemon knows, by the point's name ("r01/c07/gpu0/power").
// Readings are not state: nothing here is journaled, moves a revision or outlives the process. Safe from any
// thread; writers come with batches, a reader gets copies, or looks on under the lock and is quick.
//
// Who puts the same points again and again asks for their places once and puts by place: no name is looked up
// and no text copied then. A place stays that of its name for the life of the board.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
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
  using place = std::uint32_t;

  // Each replaces the one of its name. A value that is not finite is put as bad, without a value.
  void put(std::span<const named_reading> batch);

  // Where readings of this name go. Until the first put there is no reading under it.
  place place_of(std::string_view name, std::string_view unit, std::string_view source);
  struct placed_reading {
    place at = 0;
    reading_quality quality = reading_quality::unknown;
    std::optional<double> value;
    std::int64_t source_wall_ns = 0;
  };
  // A name that was forgotten since its place was asked for takes nothing: ask for the place again.
  void put(std::span<const placed_reading> batch, std::int64_t received_wall_ns);

  // What came before the given wall time becomes stale; its value stays to be seen as such.
  void mark_stale(std::string_view prefix, std::int64_t before_wall_ns);
  void mark_stale(std::span<const place> places);
  void forget(std::string_view prefix);

  std::optional<reading> find(std::string_view name) const;
  std::vector<named_reading> under(std::string_view prefix) const;

  // What changed after the version, newest value only.
  struct changes {
    std::uint64_t version = 0;
    std::vector<named_reading> points;
  };
  changes since(std::uint64_t version, std::span<const std::string> prefixes) const;  // no prefix: all

  struct sight {
    std::string_view name;
    place at = 0;
    const reading& what;
    std::uint64_t times = 0;  // how often this point was put or turned stale
  };
  // The same without copies, in the order of names; gives the board's version. Each runs under the board's
  // lock: it must not call the board.
  std::uint64_t look(std::uint64_t version, std::span<const std::string> prefixes,
                     const std::function<void(const sight&)>& each) const;

  std::size_t size() const;
  std::uint64_t puts() const;  // readings put since the start

 private:
  struct entry {
    std::string name;
    reading what;
    std::uint64_t version = 0;  // of its last change; 0: never put
    std::uint64_t times = 0;
    bool forgotten = false;
  };
  using index = std::map<std::string_view, place>;  // views of the entries' own names; without the forgotten
  entry& entry_of(std::string_view name);
  void changed(entry& of);

  mutable std::mutex guard_;
  std::uint64_t version_ = 0;
  std::uint64_t puts_ = 0;
  std::size_t known_ = 0;      // entries that have a reading
  std::deque<entry> entries_;  // by place; never shrinks
  index by_name_;
  std::map<std::string_view, place> forgotten_;
};

}  // namespace busbar::core
