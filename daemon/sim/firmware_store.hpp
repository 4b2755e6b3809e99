// Firmware components and update tasks of one BMC. Owner: its device.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/sim/http_message.hpp"
#include "daemon/sim/json.hpp"
#include "daemon/sim/resource_tree.hpp"

namespace busbar::sim {

// What an update request carries: the component it names and the image's own words.
struct update_request {
  std::string component;
  std::string image_component;
  std::string image_version;
};

// multipart/form-data with the parts UpdateParameters and UpdateFile; none: malformed, with the reason in
// `why`.
std::optional<update_request> parse_update(const http_request& request, std::string& why);

struct update_task {
  std::string component;
  std::string version;
  instant started{0};
  instant ends{0};
  bool refused = false;    // ends in Exception
  bool unchanged = false;  // ends well and changes nothing
  bool vanishes = false;   // answers 404 once it is done
  bool finished = false;
};

class firmware_store {
 public:
  explicit firmware_store(const resource_tree& tree, bool starts_old);

  const std::string& version(std::string_view component) const;  // empty: no such component
  bool knows(std::string_view component) const { return active_.find(component) != active_.end(); }
  std::vector<std::string> components() const;
  bool busy() const;

  std::string begin(const update_request& update, instant now, instant flash, update_task faults);
  // The task's end: its version is staged for its component's activation.
  void finish(std::string_view id);
  void activate(std::string_view activation);  // bmc_reset | host_restart
  void forget_tasks() { tasks_.clear(); }      // the BMC restarted

  const update_task* task(std::string_view id) const;
  const std::map<std::string, update_task, std::less<>>& tasks() const { return tasks_; }
  json task_body(const std::string& id, const update_task& task, instant now, const std::string& wall) const;

  json save() const;
  void load(const json& saved);

 private:
  std::map<std::string, std::string, std::less<>> active_;
  std::map<std::string, std::string, std::less<>> staged_;
  std::map<std::string, std::string, std::less<>> activation_;
  std::map<std::string, update_task, std::less<>> tasks_;
  int last_task_ = 0;
};

}  // namespace busbar::sim
