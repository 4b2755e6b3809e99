// Firmware: what runs, the push of one image, and the task that installs it.
#include <fmt/format.h>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/driver.hpp"

namespace busbar::devices::redfish {

using core::fault;
using core::make_fault;

namespace {

struct update_place {
  absl::Status status;
  std::string inventory;
  std::string push;
};

task<update_place> find_update_service(driver_ptr d) {
  update_place place;
  const absl::StatusOr<std::string> uri = co_await root_link(d, "UpdateService");
  if (!uri.ok()) {
    place.status = uri.status();
    co_return place;
  }
  const fetched service = co_await fetch(d->device, *uri, priority::command);
  place.status = service.status;
  if (!service.ok()) co_return place;
  place.inventory = service.body()["FirmwareInventory"].link().value_or("");
  place.push = service.body()["MultipartHttpPushUri"].text().value_or("");
  if (place.inventory.empty()) {
    place.status = make_fault(fault::BMC_BAD_DATA,
                              fmt::format("{} on {} links no FirmwareInventory", *uri, d->device->address()));
  }
  co_return place;
}

std::string path_of(const std::string& location) {
  const auto scheme = location.find("://");
  if (scheme == std::string::npos) return location;
  const auto path = location.find('/', scheme + 3);
  return path == std::string::npos ? "" : location.substr(path);
}

}  // namespace

task<absl::StatusOr<std::vector<component_facts>>> read_firmware(driver_ptr d) {
  const update_place place = co_await find_update_service(d);
  if (!place.status.ok()) co_return place.status;
  const listing list = co_await fetch_list(d->device, place.inventory, priority::telemetry, list_of::bodies);
  if (!list.ok()) co_return list.status;
  const std::vector<fetched> bodies = co_await fetch_members(d->device, list, priority::telemetry);
  std::vector<component_facts> components;
  for (const fetched& body : bodies) {
    if (body.device_failed()) co_return body.status;
    component_facts facts;
    facts.component = last_part(body.uri);
    if (body.ok()) {
      facts.component = body.body()["Id"].text().value_or(facts.component);
      const auto version = body.body()["Version"].text();
      if (version && lower_case(*version) != "n/a" && lower_case(*version) != "na") facts.version = version;
    }
    components.push_back(std::move(facts));
  }
  co_return components;
}

task<absl::StatusOr<std::string>> push_firmware(driver_ptr d, std::string component, std::string image_path) {
  const update_place place = co_await find_update_service(d);
  if (!place.status.ok()) co_return place.status;
  if (place.push.empty()) {
    co_return make_fault(fault::FIRMWARE_REFUSED,
                         fmt::format("{} offers no MultipartHttpPushUri; {} cannot be pushed",
                                     d->device->address(), component));
  }
  const listing list = co_await fetch_list(d->device, place.inventory, priority::command);
  if (!list.ok()) co_return list.status;
  std::string target;
  for (const std::string& uri : list.members) {
    if (last_part(uri) == component) target = plain_uri(uri);
  }
  if (target.empty()) {
    co_return make_fault(fault::FIRMWARE_REFUSED,
                         fmt::format("{} lists no firmware component {}; check the baseline",
                                     d->device->address(), component));
  }
  request push;
  push.method = http_method::post;
  push.uri = place.push;
  push.urgency = priority::command;
  push.timeout = d->device->options().upload_timeout;
  http_part parameters;
  parameters.name = "UpdateParameters";
  parameters.content_type = "application/json";
  parameters.data = json_object({{"Targets", json_array({json_quote(target)})}});
  http_part image;
  image.name = "UpdateFile";
  image.content_type = "application/octet-stream";
  image.file_path = image_path;
  push.parts.push_back(std::move(parameters));
  push.parts.push_back(std::move(image));
  const response answer = co_await d->device->send(push);
  if (!answer.good()) {
    const absl::Status status = fault_of_answer(*d->device, push, answer);
    if (!answer.status.ok() || answer.http == 401 || answer.http == 403) co_return status;
    co_return make_fault(
        fault::FIRMWARE_REFUSED,
        fmt::format("{} refused the image for {}: {}", d->device->address(), component, status.ToString()));
  }
  const auto document = json_document::parse(answer.body);
  const auto location = header_of(answer.headers, "location");
  const auto link = document ? document->root().link() : std::nullopt;
  // The task's own URI tells more than its monitor, which vanishes when the task is done.
  if (link && link->find("/Tasks/") != std::string::npos) co_return *link;
  co_return path_of(location.value_or(link.value_or("")));
}

namespace {

struct tasks_read {
  absl::Status status;
  listing list;
  std::vector<fetched> bodies;
};

task<tasks_read> read_tasks(driver_ptr d) {
  tasks_read read;
  const absl::StatusOr<std::string> service_uri = co_await root_link(d, "Tasks");
  read.status = service_uri.status();
  if (!service_uri.ok()) co_return read;
  const fetched service = co_await fetch(d->device, *service_uri, priority::command);
  read.status = service.status;
  if (!service.ok()) co_return read;
  const auto tasks_uri = service.body()["Tasks"].link();
  if (!tasks_uri) co_return read;
  read.list = co_await fetch_list(d->device, *tasks_uri, priority::command, list_of::bodies);
  read.status = read.list.status;
  if (!read.list.ok()) co_return read;
  read.bodies = co_await fetch_members(d->device, read.list, priority::command);
  co_return read;
}

// The newest of the tasks that a rule takes; empty when there is none.
template <class Rule>
absl::StatusOr<std::string> newest_task(const driver& d, const tasks_read& tasks, const Rule& takes) {
  if (!tasks.status.ok()) return tasks.status;
  std::string newest;
  std::string newest_start;
  for (const fetched& one : tasks.bodies) {
    if (one.not_found()) continue;  // ended and gone between the list and the read
    // A task that cannot be read may be the one: to answer "none" would let a push be repeated.
    if (!one.ok()) return one.status;
    if (!takes(one.body())) continue;
    const std::string start = one.body()["StartTime"].text().value_or("");
    if (!newest.empty() && start < newest_start) continue;
    newest = one.uri;
    newest_start = start;
  }
  if (newest.empty() && !tasks.list.complete) {
    return make_fault(fault::BMC_BAD_DATA, fmt::format("the task list of {} is incomplete: {}",
                                                       d.device->address(), tasks.list.incomplete_why));
  }
  return newest;
}

}  // namespace

task<absl::StatusOr<std::string>> find_update(driver_ptr d, std::string component) {
  const tasks_read tasks = co_await read_tasks(d);
  co_return newest_task(*d, tasks, [&component](json_view body) { return task_is_for(body, component); });
}

task<absl::StatusOr<std::string>> find_unnamed_update(driver_ptr d) {
  const update_place place = co_await find_update_service(d);
  if (!place.status.ok()) co_return place.status;
  const listing inventory = co_await fetch_list(d->device, place.inventory, priority::command);
  if (!inventory.ok()) co_return inventory.status;
  std::vector<std::string> components;
  for (const std::string& uri : inventory.members) components.push_back(last_part(plain_uri(uri)));
  const tasks_read tasks = co_await read_tasks(d);
  co_return newest_task(*d, tasks,
                        [&components](json_view body) { return task_may_be_any_update(body, components); });
}

task<absl::StatusOr<task_facts>> read_task(driver_ptr d, std::string uri) {
  const fetched body = co_await fetch(d->device, uri, priority::command);
  if (body.not_found()) {
    task_facts gone;
    gone.state = task_state::gone;
    gone.message = "the task is no longer there; the version read decides";
    co_return gone;
  }
  // A monitor answers 202 without a body while the task runs.
  if (!body.ok() && body.http == 202) {
    task_facts running;
    running.message = "accepted";
    co_return running;
  }
  if (!body.ok()) co_return body.status;
  co_return decode_task(body.body(), body.http);
}

}  // namespace busbar::devices::redfish
