#include "daemon/cli/acting.hpp"

#include <absl/status/status.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <random>

#include "actors/manifest/names.hpp"
#include "daemon/cli/acting_parts.hpp"
#include "daemon/cli/host_list.hpp"
#include "daemon/cli/manifest_files.hpp"
#include "daemon/cli/table.hpp"
#include "daemon/cli/watching.hpp"

namespace busbar::cli {
namespace {

using google::protobuf::Message;

// One id a command line and target: a call repeated after a lost answer starts nothing new.
std::string request_id_for(const session& with, std::size_t index) {
  const std::string& said = with.said().request_id;
  if (!said.empty()) return index == 0 ? said : fmt::format("{}-{}", said, index);
  std::random_device random;
  return fmt::format("cli-{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

bool may_go_on(session& with, const std::string& what, const std::vector<std::string>& names, danger level,
               reason why) {
  if (why == reason::needed && with.said().reason.empty() && !with.said().dry_run) {
    with.say(fmt::format("{} needs --reason TEXT: it stands in the operation and its events", what));
    return false;
  }
  if (level == danger::none || with.said().yes || with.said().dry_run) return true;
  std::vector<std::string> shorter;
  for (const std::string& name : names) shorter.push_back(manifest::short_name(name));
  if (!with.world().in_is_terminal) {
    with.say(fmt::format("{} of {} needs --yes where nobody can be asked", what, fold_host_list(shorter)));
    return false;
  }
  with.world().err << fmt::format("{} of {}? [y/N] ", what, fold_host_list(shorter)) << std::flush;
  std::string line;
  std::getline(with.world().in, line);
  if (line == "y" || line == "yes") return true;
  with.say("nothing was done");
  return false;
}

v1::ActRequest act_request(const session& with, const std::string& name, std::size_t index) {
  v1::ActRequest act;
  act.set_name(name);
  act.set_request_id(request_id_for(with, index));
  act.set_validate_only(with.said().dry_run);
  act.set_etag(with.said().etag);
  act.set_reason(with.said().reason);
  return act;
}

// To the daemon that holds the target. Where several could, each is asked: one that does not hold it refuses
// it whole.
call_result act(session& with, const std::string& method, const std::string& name, const Message& request,
                v1::Operation& operation, std::size_t& from) {
  call_result answer;
  for (const std::size_t endpoint : with.holders_of(name)) {
    v1::Operation made;
    const call_result one = with.wire().call(endpoint, method, request, made, with.call_deadline());
    const bool is_foreign = one.code == static_cast<int>(absl::StatusCode::kNotFound);
    if (!is_foreign || answer.ok()) {
      answer = one;
      from = endpoint;
    }
    if (one.ok()) {
      operation = made;
      return answer;
    }
  }
  return answer;
}

// Of several names all are asked for first: one that is refused leaves the others alone.
exit_code refused_among(session& with, const std::string& method, const std::vector<std::string>& names,
                        const request_maker& make) {
  exit_code code = exit_code::done;
  if (names.size() < 2 || with.said().dry_run) return code;
  for (std::size_t i = 0; i < names.size(); ++i) {
    v1::ActRequest only_asked = act_request(with, names[i], i);
    only_asked.set_validate_only(true);
    v1::Operation none;
    std::size_t from = 0;
    const call_result result = act(with, method, names[i], *make(std::move(only_asked)), none, from);
    if (!result.ok() && !result.unanswered()) code = worst(code, with.tell(result, names[i]));
  }
  if (code != exit_code::done) with.say("nothing was done: one of the names was refused");
  return code;
}

exit_code act_on_each(session& with, const std::string& method, const std::vector<std::string>& names,
                      const request_maker& make) {
  exit_code code = refused_among(with, method, names, make);
  if (code != exit_code::done) return code;
  listing started;
  std::vector<std::string> running;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto operation = std::make_unique<v1::Operation>();
    std::size_t from = 0;
    const call_result result =
        act(with, method, names[i], *make(act_request(with, names[i], i)), *operation, from);
    if (result.unanswered()) {
      code = worst(code, with.tell_unreachable(from, result));
      started.unreachable.push_back({with.wire().endpoints()[from], result.message});
    } else if (!result.ok()) {
      code = worst(code, with.tell(result, names[i]));
    } else if (operation->name().empty()) {
      with.say(fmt::format("{}: {}", manifest::short_name(names[i]),
                           operation->message().empty() ? "would be done" : operation->message()));
    } else {
      if (operation->done() && operation->state() != v1::Operation::SUCCEEDED)
        code = worst(code, exit_code::no);
      if (!operation->done()) running.push_back(operation->name());
      started.items.push_back(std::move(operation));
    }
  }
  if (with.said().wait && !running.empty()) return worst(code, wait_for_operations(with, running));
  if (!started.items.empty() || !started.unreachable.empty()) print(with, kind::operations, started);
  return code;
}

}  // namespace

exit_code act_on(session& with, const std::string& method, const std::string& what, const std::vector<std::string>& names,
                 danger level, reason why, const request_maker& make) {
  if (!may_go_on(with, what, names, level, why)) return exit_code::usage;
  return act_on_each(with, method, names, make);
}

exit_code act_on_names(session& with, const std::string& method, const std::string& what, danger level,
                       reason why, const request_maker& make) {
  const auto names = with.names();
  if (!names || names->empty()) {
    if (names) with.say(fmt::format("{} needs a name", what));
    return exit_code::usage;
  }
  return act_on(with, method, what, *names, level, why, make);
}

namespace {

std::unique_ptr<Message> bare(v1::ActRequest act) {
  return std::make_unique<v1::ActRequest>(std::move(act));
}

struct applied {
  listing answers;
  std::vector<v1::SpecChange> changes;
  std::vector<std::string> operations;
  std::vector<std::string> taken;
  std::vector<std::string> others;
};

template <class Response>
exit_code take_answers(session& with, const std::vector<answer<Response>>& answers, applied& all) {
  exit_code code = exit_code::done;
  const call_result* foreign = nullptr;
  for (const auto& one : answers) {
    const auto& daemon = with.wire().endpoints()[one.from];
    if (one.result.unanswered()) {
      code = worst(code, with.tell_unreachable(one.from, one.result));
      all.answers.unreachable.push_back({daemon, one.result.message});
    } else if (one.result.code == static_cast<int>(absl::StatusCode::kNotFound)) {
      foreign = &one.result;
    } else if (!one.result.ok()) {
      code =
          worst(code, with.tell(one.result, one.result.spec_errors.errors().empty() ? daemon.instance : ""));
    } else {
      all.answers.items.push_back(std::make_unique<Response>(one.value));
      all.changes.insert(all.changes.end(), one.value.changes().begin(), one.value.changes().end());
      all.taken.insert(all.taken.end(), one.value.racks().begin(), one.value.racks().end());
      all.others.insert(all.others.end(), one.value.other_racks().begin(), one.value.other_racks().end());
    }
  }
  if (code != exit_code::done) return code;
  if (all.taken.empty() && foreign != nullptr) return with.tell(*foreign, "");
  for (const std::string& rack : all.others) {
    if (std::find(all.taken.begin(), all.taken.end(), rack) != all.taken.end()) continue;
    with.say(fmt::format("{}: no daemon that was asked holds this rack; those that were: busbar get daemons",
                         manifest::short_name(rack)));
    code = exit_code::usage;
  }
  return code;
}

void print_changes(session& with, const applied& all, const char* list_kind) {
  const output format = with.said().format;
  if (format == output::json || format == output::yaml) {
    with.world().out << list_text(list_kind, all.answers,
                                  format == output::json ? text_format::json : text_format::yaml);
    return;
  }
  if (format == output::name) {
    for (const std::string& rack : all.taken) with.world().out << manifest::short_name(rack) << "\n";
    return;
  }
  std::vector<row> rows{{"RACK", "KEY", "STORED", "DECLARED"}};
  for (const auto& change : all.changes) {
    rows.push_back(
        {manifest::short_name(change.rack()), change.key_path(), change.stored(), change.declared()});
  }
  if (rows.size() > 1) with.world().out << aligned(rows);
}

std::vector<v1::ManifestFile> files_of(session& with, exit_code& code) {
  std::vector<std::string> errors;
  std::vector<v1::ManifestFile> files = read_manifest_files(with.said().names, errors);
  for (const std::string& error : errors) with.say(error);
  code = errors.empty() ? exit_code::done : exit_code::usage;
  return files;
}

}  // namespace

exit_code manifest_apply(session& with) {
  exit_code code = exit_code::done;
  v1::ApplyManifestRequest request;
  for (auto& file : files_of(with, code)) *request.add_files() = std::move(file);
  if (code != exit_code::done) return code;
  request.set_request_id(request_id_for(with, 0));
  request.set_validate_only(with.said().dry_run);
  request.set_etag(with.said().etag);
  request.set_reason(with.said().reason);
  applied all;
  const auto answers = with.ask<v1::ApplyManifestResponse>(with.everyone(), "ApplyManifest", request);
  code = take_answers(with, answers, all);
  print_changes(with, all, "ApplyManifestResponseList");
  std::vector<std::string> running;
  for (const auto& one : answers) {
    if (!one.result.ok()) continue;
    for (const std::string& rack : one.value.racks()) {
      const char* verb = one.value.changes().empty() ? "is as declared"
                         : with.said().dry_run       ? "would be applied"
                                                     : "applied";
      with.say(fmt::format("{}: {}", manifest::short_name(rack), verb));
    }
    const auto& operation = one.value.operation();
    if (!operation.name().empty() && !operation.done()) running.push_back(operation.name());
  }
  if (with.said().wait && !running.empty()) return worst(code, wait_for_operations(with, running));
  return code;
}

exit_code manifest_diff(session& with) {
  exit_code code = exit_code::done;
  v1::DiffManifestRequest request;
  for (auto& file : files_of(with, code)) *request.add_files() = std::move(file);
  if (code != exit_code::done) return code;
  applied all;
  code =
      take_answers(with, with.ask<v1::DiffManifestResponse>(with.everyone(), "DiffManifest", request), all);
  print_changes(with, all, "DiffManifestResponseList");
  if (code == exit_code::done && all.changes.empty()) with.say("no difference from what is stored");
  return worst(code, all.changes.empty() ? exit_code::done : exit_code::no);
}

exit_code rack_bringup(session& with) {
  const auto members = with.said().members.empty()
                           ? std::vector<std::string>{}
                           : expand_host_list(with.said().members).value_or(std::vector<std::string>{});
  if (members.empty() && !with.said().members.empty()) {
    with.say(fmt::format("'{}' is no host list (c[01-16])", with.said().members));
    return exit_code::usage;
  }
  return act_on_names(with, "BringupRack", "bring-up", danger::none, reason::optional,
                      [&members](v1::ActRequest act) {
                        auto request = std::make_unique<v1::BringupRackRequest>();
                        *request->mutable_act() = std::move(act);
                        for (const std::string& member : members) request->add_members(member);
                        return request;
                      });
}

exit_code rack_shutdown(session& with) {
  return act_on_names(with, "ShutdownRack", "shutdown", danger::asks, reason::optional, &bare);
}

exit_code node_retry(session& with) {
  return act_on_names(with, "RetryNode", "retry", danger::none, reason::optional,
                      [&with](v1::ActRequest act) {
                        auto request = std::make_unique<v1::RetryNodeRequest>();
                        *request->mutable_act() = std::move(act);
                        request->set_from_step(with.said().from_step);
                        return request;
                      });
}

exit_code node_trust(session& with) {
  if (with.said().names.size() != 1 || with.said().pin.size() != 64) {
    with.say(
        "trust takes one node and --pin SHA256 (64 hex digits): busbar describe nodes NAME shows the pin "
        "seen");
    return exit_code::usage;
  }
  return act_on_names(with, "TrustNode", "trust in a new certificate", danger::asks, reason::needed,
                      [&with](v1::ActRequest act) {
                        auto request = std::make_unique<v1::TrustNodeRequest>();
                        *request->mutable_act() = std::move(act);
                        request->set_pin(with.said().pin);
                        return request;
                      });
}

exit_code bmc_release(session& with) {
  return act_on_names(with, "ReleaseBmc", "release of the BMC", danger::asks, reason::needed, &bare);
}

exit_code bmc_unlock(session& with) {
  return act_on_names(with, "UnlockBmc", "reset of the login counter", danger::asks, reason::needed, &bare);
}

exit_code operation_cancel(session& with) {
  return act_on_names(with, "CancelOperation", "cancel", danger::none, reason::optional, &bare);
}

}  // namespace busbar::cli
