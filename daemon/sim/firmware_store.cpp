#include "daemon/sim/firmware_store.hpp"

#include <algorithm>

#include "daemon/sim/redfish_reply.hpp"

namespace busbar::sim {

namespace {

// The value of `name` in a header like `form-data; name="UpdateFile"; filename="x"`.
std::string parameter_of(std::string_view header, std::string_view name) {
  const std::string mark = std::string(name) + "=";
  std::size_t at = header.find(mark);
  while (at != std::string_view::npos && at > 0 && header[at - 1] != ' ' && header[at - 1] != ';') {
    at = header.find(mark, at + 1);  // filename= ends in name=
  }
  if (at == std::string_view::npos) {
    return {};
  }
  std::string_view rest = header.substr(at + mark.size());
  if (!rest.empty() && rest.front() == '"') {
    rest.remove_prefix(1);
    return std::string(rest.substr(0, rest.find('"')));
  }
  return std::string(rest.substr(0, rest.find_first_of("; \r\n")));
}

// Bodies of the parts, by name.
std::map<std::string, std::string_view> parts_of(std::string_view body, const std::string& boundary) {
  std::map<std::string, std::string_view> parts;
  const std::string delimiter = "--" + boundary;
  std::size_t at = body.find(delimiter);
  while (at != std::string_view::npos) {
    const std::size_t next = body.find("\r\n" + delimiter, at + delimiter.size());
    const std::size_t head_end = body.find("\r\n\r\n", at);
    if (next == std::string_view::npos || head_end == std::string_view::npos || head_end > next) {
      break;
    }
    const std::string name = parameter_of(body.substr(at, head_end - at), "name");
    parts[name] = body.substr(head_end + 4, next - head_end - 4);
    at = next + 2;
  }
  return parts;
}

std::string last_segment(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::optional<update_request> parse_update(const http_request& request, std::string& why) {
  const auto type = request.headers.find("content-type");
  const std::string boundary = type == request.headers.end() ? "" : parameter_of(type->second, "boundary");
  const auto parts =
      boundary.empty() ? std::map<std::string, std::string_view>{} : parts_of(request.body, boundary);
  const auto parameters = parts.find("UpdateParameters");
  const auto file = parts.find("UpdateFile");
  if (parameters == parts.end() || file == parts.end()) {
    why = "the multipart body needs UpdateParameters and UpdateFile";
    return std::nullopt;
  }
  const json wanted = json::parse(parameters->second, nullptr, false);
  if (!wanted.is_object() || !wanted.contains("Targets") || !wanted["Targets"].is_array() ||
      wanted["Targets"].size() != 1 || !wanted["Targets"][0].is_string()) {
    why = "UpdateParameters must name one target";
    return std::nullopt;
  }
  const std::string_view line = file->second.substr(0, file->second.find('\n'));
  const std::size_t blank = line.find(' ');
  if (blank == std::string_view::npos) {
    why = "the image has no header";
    return std::nullopt;
  }
  return update_request{last_segment(wanted["Targets"][0].get<std::string>()),
                        std::string(line.substr(0, blank)), std::string(line.substr(blank + 1))};
}

firmware_store::firmware_store(const resource_tree& tree, bool starts_old) {
  for (const firmware_row& row : tree.firmware()) {
    const auto& old = tree.starts_old();
    const bool is_old = starts_old && std::find(old.begin(), old.end(), row.component) != old.end();
    active_[row.component] = is_old ? row.old_version : row.version;
    activation_[row.component] = row.activation;
  }
}

const std::string& firmware_store::version(std::string_view component) const {
  static const std::string none;
  const auto found = active_.find(component);
  return found == active_.end() ? none : found->second;
}

std::vector<std::string> firmware_store::components() const {
  std::vector<std::string> names;
  for (const auto& [name, version] : active_) {
    names.push_back(name);
  }
  return names;
}

bool firmware_store::busy() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [](const auto& each) { return !each.second.finished; });
}

std::string firmware_store::begin(const update_request& update, instant now, instant flash,
                                  update_task faults) {
  const std::string id = std::to_string(++last_task_);
  faults.component = update.component;
  faults.version = update.image_version;
  faults.started = now;
  faults.ends = now + flash;
  faults.refused = faults.refused || update.image_component != update.component;
  tasks_[id] = std::move(faults);
  return id;
}

void firmware_store::finish(std::string_view id) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end() || found->second.finished) {
    return;
  }
  update_task& task = found->second;
  task.finished = true;
  if (!task.refused && !task.unchanged) {
    staged_[task.component] = task.version;
  }
}

void firmware_store::activate(std::string_view activation) {
  std::erase_if(staged_, [this, activation](const auto& each) {
    if (activation_[each.first] != activation) {
      return false;
    }
    active_[each.first] = each.second;
    return true;
  });
}

const update_task* firmware_store::task(std::string_view id) const {
  const auto found = tasks_.find(id);
  if (found == tasks_.end() || (found->second.finished && found->second.vanishes)) {
    return nullptr;
  }
  return &found->second;
}

json firmware_store::task_body(const std::string& id, const update_task& task, instant now,
                               const std::string& wall) const {
  const std::string path = "/redfish/v1/TaskService/Tasks/" + id;
  const double length = std::max(1.0, static_cast<double>((task.ends - task.started).count()));
  const double done = static_cast<double>((now - task.started).count()) / length;
  json messages = json::array();
  if (task.finished && task.refused) {
    messages = extended_info("GeneralError", "The image was not accepted by " + task.component + ".");
  } else {
    messages.push_back({{"@odata.type", "#Message.v1_2_0.Message"},
                        {"MessageId", "TaskEvent.1.0.3.TaskStarted"},
                        {"Message", "The task with Id '" + id + "' has started."},
                        {"MessageArgs", {id}},
                        {"MessageSeverity", "OK"},
                        {"Resolution", "None."}});
    messages.push_back({{"@odata.type", "#Message.v1_2_0.Message"},
                        {"MessageId", "Update.1.0.TransferringToComponent"},
                        {"Message", "Image '" + task.version + "' is being transferred to '" + task.component + "'."},
                        {"MessageArgs", {task.version, task.component}},
                        {"MessageSeverity", "OK"},
                        {"Resolution", "None."}});
  }
  const char* const state = !task.finished ? "Running" : task.refused ? "Exception" : "Completed";
  return {{"@odata.id", path},
          {"@odata.type", "#Task.v1_7_4.Task"},
          {"Id", id},
          {"Name", "Task " + id},
          {"StartTime", wall},
          {"TaskState", state},
          {"TaskStatus", task.finished && task.refused ? "Critical" : "OK"},
          {"PercentComplete", task.finished ? 100 : static_cast<int>(100.0 * std::clamp(done, 0.0, 0.99))},
          {"Messages", messages},
          {"Payload", {{"TargetUri", "/redfish/v1/UpdateService/update-multipart"}}}};
}

json firmware_store::save() const {
  return {{"active", active_}, {"staged", staged_}};
}

void firmware_store::load(const json& saved) {
  for (const auto& [component, version] : saved.at("active").items()) {
    active_[component] = version.get<std::string>();
  }
  staged_.clear();
  for (const auto& [component, version] : saved.at("staged").items()) {
    staged_[component] = version.get<std::string>();
  }
}

}  // namespace busbar::sim
