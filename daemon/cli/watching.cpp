#include "daemon/cli/watching.hpp"

#include <fmt/format.h>
#include <google/protobuf/duration.pb.h>

#include <algorithm>
#include <map>
#include <thread>

#include "actors/manifest/names.hpp"
#include "daemon/cli/condition.hpp"
#include "daemon/cli/merged_watch.hpp"
#include "daemon/cli/reading.hpp"

namespace busbar::cli {
namespace {

using google::protobuf::Message;
using steady = std::chrono::steady_clock;

constexpr auto frame = std::chrono::milliseconds(200);  // the view is drawn at most this often
constexpr auto slice = std::chrono::seconds(20);        // of one WaitOperation

const Message* item_of(const v1::WatchResponse& change) {
  switch (change.what_case()) {
    case v1::WatchResponse::kRack:
      return &change.rack();
    case v1::WatchResponse::kNode:
      return &change.node();
    case v1::WatchResponse::kShelf:
      return &change.shelf();
    case v1::WatchResponse::kController:
      return &change.controller();
    case v1::WatchResponse::kValve:
      return &change.valve();
    case v1::WatchResponse::kPdu:
      return &change.pdu();
    case v1::WatchResponse::kCdu:
      return &change.cdu();
    case v1::WatchResponse::kEndpoint:
      return &change.endpoint();
    case v1::WatchResponse::kOperation:
      return &change.operation();
    case v1::WatchResponse::kEvent:
      return &change.event();
    case v1::WatchResponse::kBookmark:
    case v1::WatchResponse::WHAT_NOT_SET:
      break;
  }
  return nullptr;
}

std::vector<std::size_t> holders_of_all(const session& with, const std::vector<std::string>& names) {
  if (names.empty()) return with.everyone();
  std::vector<std::size_t> whom;
  for (const std::string& name : names) {
    for (const std::size_t one : with.holders_of(name)) {
      if (std::find(whom.begin(), whom.end(), one) == whom.end()) whom.push_back(one);
    }
  }
  std::sort(whom.begin(), whom.end());
  return whom;
}

// The object of an event; of every other item its name.
std::string subject_of(const Message& item) {
  bool found = false;
  const auto* event = dynamic_cast<const v1::Event*>(&item);
  return event != nullptr ? event->object() : field_text(item, "name", found);
}

bool is_under(const std::string& name, const std::vector<std::string>& names) {
  return names.empty() || std::any_of(names.begin(), names.end(), [&name](const std::string& parent) {
           return name == parent || name.starts_with(parent + "/");
         });
}

bool time_is_over(const session& with) {
  return steady::now() >= with.command_deadline();
}

// Draws over its last picture. Owner: the command's thread.
class picture {
 public:
  picture(std::ostream& out, const context& world) : out_(out), world_(world) {}
  void draw(const live_view& view, bool now_please) {
    if (!now_please && steady::now() - drawn_ < frame) return;
    drawn_ = steady::now();
    if (height_ > 0) out_ << fmt::format("\x1b[{}A", height_);
    const auto lines = view.lines(world_.now(), world_.terminal_rows - 1, world_.terminal_columns);
    for (const std::string& line : lines) out_ << "\x1b[2K" << line << "\n";
    out_ << "\x1b[J" << std::flush;
    height_ = lines.size();
  }

 private:
  std::ostream& out_;
  const context& world_;
  steady::time_point drawn_{};
  std::size_t height_ = 0;
};

void tell_lost(session& with, const watch_event& event, exit_code& code) {
  code = worst(code, event.lost->unanswered()
                         ? with.tell_unreachable(event.from, *event.lost)
                         : with.tell(*event.lost, with.wire().endpoints()[event.from].instance));
}

// All daemons refused: there is nothing more to wait for.
class refusals {
 public:
  explicit refusals(std::size_t daemons) : left_(daemons) {}
  bool all_after(const watch_event& event) {
    if (event.lost && !event.lost->unanswered() && left_ > 0) --left_;
    return left_ == 0;
  }

 private:
  std::size_t left_;
};

exit_code watch_racks(session& with, const std::vector<std::string>& names) {
  const auto whom = holders_of_all(with, names);
  v1::WatchRequest request;
  for (const char* kind : {"racks", "nodes", "shelves", "operations"}) request.add_kinds(kind);
  if (names.size() == 1) request.set_parent(names[0]);
  request.set_bookmarks(true);
  merged_watch changes(with, whom, request);
  live_view view;
  picture drawn(with.world().out, with.world());
  refusals refused(whom.size());
  exit_code code = exit_code::done;
  while (!time_is_over(with)) {
    const auto event = changes.next(frame);
    if (event && event->change) {
      const Message* item = item_of(*event->change);
      if (item != nullptr && is_under(subject_of(*item), names)) view.apply(*event->change);
    }
    if (event && event->lost) tell_lost(with, *event, code);
    if (with.world().out_is_terminal) {
      drawn.draw(view, false);
    } else {
      for (const std::string& line : view.take_changes()) with.world().out << line << "\n" << std::flush;
    }
    if (event && refused.all_after(*event)) return code;
  }
  return worst(code, exit_code::timeout);
}

// Line by line, in the format asked for. The header once; columns as wide as the first rows made them.
class change_printer {
 public:
  change_printer(session& with, const kind_info& of) : with_(with), of_(of) {}
  void print(const v1::WatchResponse& change, const Message& item) {
    const output format = with_.said().format;
    std::ostream& out = with_.world().out;
    if (format == output::json || format == output::yaml) {
      out << change_text(std::string(of_.message), change, item,
                         format == output::json ? text_format::json : text_format::yaml);
    } else if (format == output::name) {
      out << item_name(item) << "\n";
    } else {
      row line = row_of(item, format == output::wide, with_.world().now());
      if (change.deleted()) line.back() = "gone";
      if (widths_.empty()) out << padded(header_of(of_.id, format == output::wide));
      out << padded(line);
    }
    out << std::flush;
  }

 private:
  std::string padded(const row& line) {
    widths_.resize(std::max(widths_.size(), line.size()));
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string cell = line[i].empty() ? "-" : line[i];
      widths_[i] = std::max({widths_[i], cell.size(), std::size_t{8}});
      text += i + 1 == line.size() ? cell : fmt::format("{:<{}}", cell, widths_[i] + 2);
    }
    return text + "\n";
  }

  session& with_;
  const kind_info& of_;
  std::vector<std::size_t> widths_;
};

// Has it ended in another way than was asked? Only where nobody asked for a condition of his own.
bool has_failed(const Message& item) {
  if (const auto* rack = dynamic_cast<const v1::Rack*>(&item)) {
    const std::string& state = rack->status().state();
    return rack->status().has_failure() || state == "degraded" || state == "cordoned" ||
           state == "troubleshooting";
  }
  if (const auto* node = dynamic_cast<const v1::Node*>(&item)) return node->status().has_failure();
  if (const auto* shelf = dynamic_cast<const v1::Shelf*>(&item)) return shelf->status().has_failure();
  const auto* operation = dynamic_cast<const v1::Operation*>(&item);
  return operation != nullptr && operation->done() && operation->state() != v1::Operation::SUCCEEDED;
}

std::string default_condition(kind of) {
  switch (of) {
    case kind::racks:
      return "state=production";
    case kind::nodes:
    case kind::shelves:
    case kind::controllers:
      return "step=PRODUCTION";
    case kind::operations:
      return "state=SUCCEEDED";
    case kind::endpoints:
      return "state=MATCHED";
    case kind::valves:
      return "proof=proven";
    case kind::pdus:
    case kind::cdus:
      return "health=GOOD";
    case kind::detectors:
    case kind::events:
    case kind::daemons:
      break;
  }
  return {};
}

class waiting {
 public:
  waiting(const std::vector<std::string>& names, std::string condition, bool by_default)
      : condition_(std::move(condition)), by_default_(by_default) {
    for (const std::string& name : names) states_[name];
  }
  void see(const Message& item) {
    const auto found = states_.find(subject_of(item));
    if (found == states_.end()) return;
    state& one = found->second;
    one.item.reset(item.New());
    one.item->CopyFrom(item);
    one.met = holds(item, condition_);
    one.failed = by_default_ && has_failed(item);
  }
  bool all_met() const {
    return std::all_of(states_.begin(), states_.end(),
                       [](const auto& entry) { return entry.second.met == true; });
  }
  bool any_failed() const {
    return std::any_of(states_.begin(), states_.end(),
                       [](const auto& entry) { return entry.second.met != true && entry.second.failed; });
  }
  std::vector<std::string> unseen() const {
    std::vector<std::string> names;
    for (const auto& [name, one] : states_) {
      if (one.item == nullptr) names.push_back(manifest::short_name(name));
    }
    return names;
  }
  bool undecided() const {
    return std::any_of(states_.begin(), states_.end(),
                       [](const auto& entry) { return !entry.second.met.has_value(); });
  }
  listing take() {
    listing all;
    for (auto& [name, one] : states_) {
      if (one.item != nullptr) all.items.push_back(std::move(one.item));
    }
    return all;
  }

 private:
  struct state {
    std::unique_ptr<Message> item;
    std::optional<bool> met;
    bool failed = false;
  };
  std::string condition_;
  bool by_default_;
  std::map<std::string, state> states_;
};

exit_code wait_until(session& with, const kind_info& of, const std::vector<std::string>& names,
                     waiting& state) {
  const auto whom = holders_of_all(with, names);
  v1::WatchRequest request;
  request.add_kinds(std::string(of.plural));
  request.set_bookmarks(true);
  merged_watch changes(with, whom, request);
  refusals refused(whom.size());
  std::size_t complete = 0;
  bool anyone_lost = false;
  exit_code code = exit_code::done;
  while (!time_is_over(with)) {
    const auto event = changes.next(frame);
    if (!event) continue;
    if (event->change) {
      if (const Message* item = item_of(*event->change)) state.see(*item);
      if (event->change->has_bookmark() && event->change->bookmark().initial_complete()) ++complete;
    } else {
      anyone_lost = true;
      tell_lost(with, *event, code);
      if (refused.all_after(*event)) return code;
    }
    if (state.all_met()) return exit_code::done;
    if (state.any_failed()) return exit_code::no;
    if (complete >= whom.size() && !state.unseen().empty()) {
      with.say(fmt::format("no {} named {}", of.singular, fmt::join(state.unseen(), ", ")));
      return exit_code::usage;
    }
  }
  if (anyone_lost && !state.unseen().empty()) return exit_code::unreachable;
  if (state.undecided()) with.say("time is over and it is not known");
  return exit_code::timeout;
}

exit_code end_of(const v1::Operation& operation, session& with) {
  if (operation.state() == v1::Operation::SUCCEEDED) return exit_code::done;
  call_result result;
  result.info = operation.error();
  result.message = operation.message();
  if (result.info.target().empty()) result.info.set_target(operation.name());
  with.tell(result, operation.name());
  const auto lock = with.hold_talk();
  for (const auto& component : operation.components()) {
    if (component.state() == v1::ComponentResult::SUCCEEDED) continue;
    with.world().err << fmt::format("  {:<10} {:<10} {} {}\n", manifest::short_name(component.target()),
                                    word(v1::ComponentResult::State_Name(component.state())),
                                    component.fault(), component.message());
  }
  return exit_code::no;
}

// Asks in slices until it is done; between them the view may be drawn.
exit_code wait_for_operation(session& with, const std::string& name, v1::Operation& operation) {
  const auto whom = with.holders_of(name);
  bool answered = true;
  while (!time_is_over(with)) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(with.command_deadline() - steady::now());
    const auto patience = std::min<std::chrono::milliseconds>(left, slice);
    v1::WaitOperationRequest request;
    request.set_name(name);
    request.mutable_timeout()->set_seconds(patience.count() / 1000);
    request.mutable_timeout()->set_nanos(static_cast<std::int32_t>(patience.count() % 1000 * 1'000'000));
    call_result result;
    for (const std::size_t endpoint : whom) {
      result =
          with.wire().call(endpoint, "WaitOperation", request, operation, patience + with.call_deadline());
      if (result.ok() || result.unanswered()) break;
    }
    if (result.ok() && operation.done()) return end_of(operation, with);
    if (!result.ok() && !result.unanswered()) return with.tell(result, name);
    if (!result.ok()) {
      with.say(fmt::format("{}: the daemon does not answer ({}); asking again", manifest::short_name(name),
                           result.message));
      std::this_thread::sleep_for(
          std::min<std::chrono::milliseconds>(left, frame * 2));  // a pause, not a signal
    }
    answered = result.ok();
  }
  if (!answered) return exit_code::unreachable;
  with.say(fmt::format("{}: still running; it goes on. busbar wait operations {}", manifest::short_name(name),
                       manifest::short_name(name)));
  return exit_code::timeout;
}

// The live view on stderr while another thread waits.
void draw_until(session& with, const std::vector<std::string>& operations, const std::stop_token& stop) {
  v1::WatchRequest request;
  for (const char* kind : {"racks", "nodes", "shelves"}) request.add_kinds(kind);
  merged_watch changes(with, holders_of_all(with, operations), request);
  std::vector<std::string> racks;
  for (const std::string& name : operations) racks.push_back(name.substr(0, name.find('/', 6)));
  live_view view;
  picture drawn(with.world().err, with.world());
  while (!stop.stop_requested()) {
    const auto event = changes.next(frame);
    const Message* item = event && event->change ? item_of(*event->change) : nullptr;
    if (item != nullptr && is_under(subject_of(*item), racks)) view.apply(*event->change);
    const auto lock = with.hold_talk();
    drawn.draw(view, false);
  }
  const auto lock = with.hold_talk();
  drawn.draw(view, true);
}

}  // namespace

exit_code watch(session& with, const kind_info& of) {
  const auto names = with.names();
  if (!names) return exit_code::usage;
  const exit_code known = check_names(with, of, *names);
  if (known != exit_code::done) return known;
  const output format = with.said().format;
  if (of.id == kind::racks && (format == output::table || format == output::wide))
    return watch_racks(with, *names);
  if (of.id == kind::daemons) {
    with.say("daemons cannot be watched; ask again: busbar get daemons");
    return exit_code::usage;
  }
  const auto whom = holders_of_all(with, *names);
  v1::WatchRequest request;
  request.add_kinds(std::string(of.plural));
  if (names->size() == 1) request.set_parent(names->front());
  request.set_bookmarks(true);
  merged_watch changes(with, whom, request);
  change_printer printer(with, of);
  refusals refused(whom.size());
  exit_code code = exit_code::done;
  while (!time_is_over(with)) {
    const auto event = changes.next(frame);
    if (!event) continue;
    if (event->lost) tell_lost(with, *event, code);
    if (refused.all_after(*event)) return code;
    const Message* item = event->change ? item_of(*event->change) : nullptr;
    if (item != nullptr && is_under(subject_of(*item), *names)) printer.print(*event->change, *item);
  }
  return worst(code, exit_code::timeout);
}

exit_code wait(session& with, const kind_info& of) {
  const auto names = with.names();
  if (!names) return exit_code::usage;
  const std::string& said = with.said().condition;
  const std::string condition = said.empty() ? default_condition(of.id) : said;
  if (names->empty() || condition.find('=') == std::string::npos) {
    with.say(
        "wait needs names, and a condition FIELD=VALUE: busbar wait nodes r01/c[01-18] --for step=VALIDATED");
    return exit_code::usage;
  }
  const exit_code known = check_names(with, of, *names);
  if (known != exit_code::done) return known;
  waiting state(*names, condition, said.empty());
  const exit_code code = wait_until(with, of, *names, state);
  const listing all = state.take();
  if (!all.items.empty()) print(with, of.id, all);
  return code;
}

exit_code wait_for_operations(session& with, const std::vector<std::string>& names) {
  std::optional<std::jthread> drawer;
  if (with.world().err_is_terminal) {
    drawer.emplace([&with, &names](const std::stop_token& stop) { draw_until(with, names, stop); });
  }
  exit_code code = exit_code::done;
  listing all;
  std::vector<v1::Operation> ended(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    code = worst(code, wait_for_operation(with, names[i], ended[i]));
    if (!ended[i].name().empty()) all.items.push_back(std::make_unique<v1::Operation>(ended[i]));
  }
  drawer.reset();  // joins: the picture is complete before the result stands under it
  print(with, kind::operations, all);
  return code;
}

}  // namespace busbar::cli
