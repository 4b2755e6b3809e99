#include "daemon/cli/reading.hpp"

#include <absl/status/status.h>
#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <thread>

#include "actors/manifest/names.hpp"
#include "daemon/cli/describe.hpp"
#include "daemon/cli/table.hpp"

namespace busbar::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int page_size = 1000;
constexpr int most_pages = 10'000;
constexpr std::size_t usual_events = 50;

std::unique_ptr<Message> make_message(const std::string& name) {
  const auto* type =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName("busbar.v1." + name);
  return std::unique_ptr<Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

const FieldDescriptor* field_named(const Message& message, const char* name) {
  return message.GetDescriptor()->FindFieldByName(name);
}

// What one daemon answered, kept apart until all have.
struct gathered {
  std::vector<std::unique_ptr<Message>> items;
  std::optional<v1::Position> position;
  call_result result;
  bool more = false;  // the daemon has more than was taken
};

// How many are shown; nothing: all.
std::optional<std::size_t> limit_of(const options& said, kind of) {
  if (said.all) return std::nullopt;
  if (!said.limit && of == kind::events) return usual_events;
  return said.limit;
}

void take_page(Message& page, gathered& into) {
  const auto* of = page.GetReflection();
  const FieldDescriptor* items = page.GetDescriptor()->field(0);
  while (of->FieldSize(page, items) > 0) into.items.emplace_back(of->ReleaseLast(&page, items));
  const FieldDescriptor* position = field_named(page, "position");
  if (of->HasField(page, position)) into.position.emplace().CopyFrom(of->GetMessage(page, position));
}

std::unique_ptr<Message> list_request(const session& with, const kind_info& of, const std::string& parent) {
  const options& said = with.said();
  if (of.id == kind::daemons) return std::make_unique<v1::GetStatusRequest>();
  if (of.id == kind::events) {
    auto request = std::make_unique<v1::ListEventsRequest>();
    request->set_object(parent);
    request->set_filter(said.filter);
    request->set_page_size(static_cast<int>(std::min<std::size_t>(limit_of(said, of.id).value_or(page_size), page_size)));
    return request;
  }
  auto request = std::make_unique<v1::ListRequest>();
  request->set_parent(parent);
  request->set_filter(said.filter);
  request->set_page_size(page_size);
  return request;
}

gathered list_from(session& with, std::size_t endpoint, const kind_info& of, const std::string& parent) {
  gathered found;
  const std::unique_ptr<Message> request = list_request(with, of, parent);
  const bool is_daemon = of.id == kind::daemons;
  for (int pages = 0; pages < most_pages; ++pages) {
    const std::unique_ptr<Message> page =
        make_message(is_daemon                ? "DaemonStatus"
                     : !of.response.empty() ? std::string(of.response)
                                              : std::string(of.list_method) + "Response");
    found.result =
        with.wire().call(endpoint, std::string(of.list_method), *request, *page, with.call_deadline());
    if (!found.result.ok()) return found;
    if (is_daemon) {
      found.position = dynamic_cast<const v1::DaemonStatus&>(*page).position();
      found.items.emplace_back(page->New())->CopyFrom(*page);
      return found;
    }
    const std::size_t before = found.items.size();
    take_page(*page, found);
    std::reverse(found.items.begin() + static_cast<std::ptrdiff_t>(before),
                 found.items.end());  // it was taken from the end
    const std::string token = page->GetReflection()->GetString(*page, field_named(*page, "next_page_token"));
    found.more = !token.empty();
    const std::optional<std::size_t> limit = limit_of(with.said(), of.id);
    // Only events come newest first: of other kinds all are needed to know which are shown.
    const bool enough = of.id == kind::events && limit && found.items.size() >= *limit;
    if (token.empty() || enough) return found;
    request->GetReflection()->SetString(request.get(), field_named(*request, "page_token"), token);
  }
  return found;
}

void add(session& with, std::size_t endpoint, gathered found, listing& all, exit_code& code) {
  const auto& daemon = with.wire().endpoints()[endpoint];
  if (found.result.unanswered()) {
    const auto known = [&daemon](const unreachable_daemon& silent) {
      return silent.daemon.target == daemon.target;
    };
    if (std::none_of(all.unreachable.begin(), all.unreachable.end(), known)) {
      all.unreachable.push_back({daemon, found.result.message});
    }
  } else if (!found.result.ok()) {
    code = worst(code, with.tell(found.result, daemon.instance));
  }
  for (auto& item : found.items) all.items.push_back(std::move(item));
  all.more = all.more || found.more;
  if (found.position) all.positions[daemon.instance] = *found.position;
}

void get_by_name(session& with, const kind_info& of, const std::string& name, listing& all, exit_code& code) {
  v1::GetRequest request;
  request.set_name(name);
  std::optional<call_result> refused;
  bool found = false;
  bool silent = false;
  for (const std::size_t endpoint : with.holders_of(name)) {
    gathered one;
    std::unique_ptr<Message> item = make_message(std::string(of.message));
    one.result = with.wire().call(endpoint, std::string(of.get_method), request, *item, with.call_deadline());
    if (one.result.ok()) {
      found = true;
      one.items.push_back(std::move(item));
    }
    if (one.result.ok() || one.result.unanswered()) {
      silent = silent || !one.result.ok();
      add(with, endpoint, std::move(one), all, code);
    } else {
      refused = one.result;  // "not mine" of one daemon matters only if no other has it
    }
  }
  if (!found && refused && !silent) code = worst(code, with.tell(*refused, name));
}

// Collections under a rack may be asked for by the rack's name: get nodes r01.
bool is_parent(const kind_info& of, const std::string& name) {
  if (name.starts_with("cdus/")) return of.id != kind::cdus;
  if (name.starts_with("plants/")) return name.find('/', 7) == std::string::npos;
  return of.get_method.empty() || (of.id != kind::racks && name.find('/', 6) == std::string::npos);
}

void list_all(session& with, const kind_info& of, const std::string& parent, listing& all, exit_code& code) {
  const std::vector<std::size_t> whom = parent.empty() ? with.everyone() : with.holders_of(parent);
  std::vector<gathered> found(whom.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < whom.size(); ++i) {
      threads.emplace_back(
          [&with, &of, &parent, &whom, &found, i] { found[i] = list_from(with, whom[i], of, parent); });
    }
  }
  const bool anyone = std::any_of(found.begin(), found.end(), [](const gathered& one) { return one.result.ok(); });
  for (std::size_t i = 0; i < whom.size(); ++i) {
    // "Not mine" of one daemon matters only if no other has it.
    if (anyone && found[i].result.code == static_cast<int>(absl::StatusCode::kNotFound)) continue;
    add(with, whom[i], std::move(found[i]), all, code);
  }
}

// The kind that a name says itself to be.
const kind_info* kind_of_name(const std::string& name) {
  if (name.starts_with("cdus/")) return &info_of(kind::cdus);
  if (name.starts_with("plants/")) return name.find("/operations/") == std::string::npos ? nullptr : &info_of(kind::operations);
  const std::size_t rack = name.find('/', 6);
  if (rack == std::string::npos) return &info_of(kind::racks);
  return kind_named(name.substr(rack + 1, name.find('/', rack + 1) - rack - 1));
}

std::int64_t time_of(const Message& item) {
  if (const auto* event = dynamic_cast<const v1::Event*>(&item)) {
    return google::protobuf::util::TimeUtil::TimestampToNanoseconds(event->time());
  }
  const auto& operation = dynamic_cast<const v1::Operation&>(item);
  return google::protobuf::util::TimeUtil::TimestampToNanoseconds(operation.create_time());
}

void sort_items(kind of, listing& all) {
  auto& items = all.items;
  if (of == kind::events) {  // each daemon's newest; oldest first for reading
    std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
      const std::int64_t left = time_of(*a);
      const std::int64_t right = time_of(*b);
      if (left != right) return left < right;
      const auto& x = dynamic_cast<const v1::Event&>(*a);
      const auto& y = dynamic_cast<const v1::Event&>(*b);
      return std::pair(x.position().revision(), x.index()) < std::pair(y.position().revision(), y.index());
    });
  } else if (of == kind::operations) {
    std::stable_sort(items.begin(), items.end(),
                     [](const auto& a, const auto& b) { return time_of(*a) > time_of(*b); });
  } else {
    std::stable_sort(items.begin(), items.end(),
                     [](const auto& a, const auto& b) { return item_name(*a) < item_name(*b); });
  }
}

// No more than asked for: of events the newest, of other kinds the first. What is left out is said.
void cut(session& with, const kind_info& of, listing& all) {
  const std::optional<std::size_t> limit = limit_of(with.said(), of.id);
  auto& items = all.items;
  if (!all.more && (!limit || items.size() <= *limit)) return;
  if (limit && items.size() > *limit) {
    const auto count = static_cast<std::ptrdiff_t>(*limit);
    if (of.id == kind::events) {
      items.erase(items.begin(), items.end() - count);
    } else {
      items.erase(items.begin() + count, items.end());
    }
  }
  const char* which = of.id == kind::events ? "the newest" : "the first";
  with.say(fmt::format("only {} {} {} are shown, there are more: --limit N, or --all", which, items.size(), of.plural));
}

}  // namespace

listing gather(session& with, const kind_info& of, const std::vector<std::string>& names, exit_code& code) {
  listing all;
  if (names.empty() || of.id == kind::daemons) list_all(with, of, "", all, code);
  for (const std::string& name : names) {
    if (of.id == kind::daemons) break;
    if (is_parent(of, name)) {
      const std::size_t before = all.items.size();
      list_all(with, of, name, all, code);
      // No event of it, or no such thing? What is gone may still have events, so only where there is none.
      if (of.id == kind::events && all.items.size() == before && all.unreachable.empty() && code == exit_code::done)
        code = check_names(with, of, {name});
    } else {
      get_by_name(with, of, name, all, code);
    }
  }
  sort_items(of.id, all);
  cut(with, of, all);
  return all;
}

exit_code check_names(session& with, const kind_info& of, const std::vector<std::string>& names) {
  exit_code code = exit_code::done;
  for (const std::string& name : names) {
    const kind_info* holds = &of;
    if (is_parent(of, name)) holds = kind_of_name(name);
    if (holds == nullptr || holds->get_method.empty()) continue;
    std::optional<call_result> refused;
    bool may_be = false;
    for (const std::size_t endpoint : with.holders_of(name)) {
      // A daemon's own rack may be watched before it is declared.
      may_be = may_be || name == "racks/" + with.wire().endpoints()[endpoint].instance;
      if (may_be) break;
      v1::GetRequest request;
      request.set_name(name);
      const std::unique_ptr<Message> item = make_message(std::string(holds->message));
      const call_result one =
          with.wire().call(endpoint, std::string(holds->get_method), request, *item, with.call_deadline());
      may_be = one.ok() || one.unanswered();
      if (may_be) break;
      refused = one;
    }
    if (!may_be && refused) code = worst(code, with.tell(*refused, name));
  }
  return code;
}

exit_code get(session& with, const kind_info& of) {
  const auto names = with.names();
  if (!names) return exit_code::usage;
  exit_code code = exit_code::done;
  const listing all = gather(with, of, *names, code);
  // "There is none" is an answer, a refused question has none.
  const bool for_people = with.said().format == output::table || with.said().format == output::wide;
  if (code == exit_code::done || !for_people || !all.items.empty() || !all.unreachable.empty())
    print(with, of.id, all);
  return worst(code, exit_code_of(all));
}

exit_code describe(session& with, const kind_info& of) {
  const output format = with.said().format;
  if (format != output::table && format != output::wide) return get(with, of);
  const auto names = with.names();
  if (!names) return exit_code::usage;
  exit_code code = exit_code::done;
  const listing all = gather(with, of, *names, code);
  bool first = true;
  for (const auto& item : all.items) {
    if (!first) with.world().out << "\n";
    first = false;
    with.world().out << describe_text(*item, with.world().now());
  }
  for (const auto& silent : all.unreachable) {
    with.say(fmt::format("{}: UNREACHABLE: {}", silent.daemon.instance, silent.message));
  }
  return worst(code, exit_code_of(all));
}

exit_code diff(session& with, const kind_info& of) {
  const auto names = with.names();
  if (!names) return exit_code::usage;
  if (of.id != kind::nodes && of.id != kind::shelves && of.id != kind::controllers) {
    with.say("diff compares nodes, shelves or controllers with what is declared; for files: busbar manifest diff DIR");
    return exit_code::usage;
  }
  exit_code code = exit_code::done;
  const listing all = gather(with, of, *names, code);
  std::vector<row> rows{{"NAME", "WHAT", "EXPECTED", "SEEN"}};
  for (const auto& item : all.items) {
    for (row& line : differences(*item)) {
      code = worst(code, line.back() == "unknown" ? exit_code::unknown : exit_code::no);
      rows.push_back(std::move(line));
    }
  }
  const output format = with.said().format;
  if (format == output::json || format == output::yaml) {
    print(with, of.id, all);
  } else if (rows.size() > 1) {
    with.world().out << aligned(rows);
  } else if (!all.items.empty()) {
    with.say("no difference from what is declared");
  }
  for (const auto& silent : all.unreachable) {
    with.say(fmt::format("{}: UNREACHABLE: {}", silent.daemon.instance, silent.message));
  }
  return worst(code, exit_code_of(all));
}

exit_code rack_status(session& with) {
  const auto names = with.names();
  if (!names) return exit_code::usage;
  exit_code code = exit_code::done;
  const listing racks = gather(with, info_of(kind::racks), *names, code);
  print(with, kind::racks, racks);
  for (const auto& item : racks.items) {
    const auto& status = dynamic_cast<const v1::Rack&>(*item).status();
    if (status.state() != "production" || status.health() == v1::HEALTH_BAD)
      code = worst(code, exit_code::no);
    if (status.state() == "production" && status.health() == v1::HEALTH_UNKNOWN)
      code = worst(code, exit_code::unknown);
  }
  if (racks.items.empty() && racks.unreachable.empty()) code = worst(code, exit_code::no);
  return worst(code, exit_code_of(racks));
}

}  // namespace busbar::cli
