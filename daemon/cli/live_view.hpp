// A bring-up as it goes: a row a member with its step, the time in it and what it waits for. Pure; fed with
// changes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "busbar/v1/busbar.pb.h"
#include "daemon/cli/table.hpp"

namespace busbar::cli {

class live_view {
 public:
  void apply(const v1::WatchResponse& change);

  // At most most_rows lines of at most columns characters. Members that say the same are folded into one row
  // (r01/c[01-16]) when there is no room for each.
  std::vector<std::string> lines(wall_time now, std::size_t most_rows, std::size_t columns) const;

  // Where there is no terminal: what changed since the last call, a line a member.
  std::vector<std::string> take_changes();

  const v1::Operation* operation(const std::string& name) const;

 private:
  struct member {
    std::string name;
    v1::MemberSpec spec;
    v1::MemberStatus status;
  };
  void note(const std::string& key, const std::string& name, const std::string& state,
            const std::string& why);
  std::vector<row> member_rows(const std::string& rack, wall_time now, bool folded) const;
  std::string rack_line(const v1::Rack& rack, wall_time now) const;

  std::map<std::string, v1::Rack> racks_;
  std::map<std::string, member> members_;  // by AIP name: nodes before shelves
  std::map<std::string, v1::Operation> operations_;
  std::map<std::string, std::string> noted_;  // last line said of each
  std::vector<std::string> changes_;
};

}  // namespace busbar::cli
