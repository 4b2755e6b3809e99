#include "daemon/cli/session.hpp"

#include <fmt/format.h>

#include <thread>

#include "actors/core/regular_file.hpp"
#include "actors/manifest/names.hpp"
#include "daemon/cli/host_list.hpp"
#include "daemon/cli/table.hpp"

namespace busbar::cli {
namespace {

constexpr auto longest_command = std::chrono::hours(24);

std::vector<endpoint> endpoints_for(const options& said, const context& world) {
  if (!said.endpoint.empty()) return {parse_endpoint(said.endpoint)};
  return find_endpoints(world.run_dir);
}

std::string rack_of(const std::string& name) {
  for (const std::string_view site : {"racks/", "plants/"}) {
    if (name.starts_with(site)) return name.substr(site.size(), name.find('/', site.size()) - site.size());
  }
  return "";
}

}  // namespace

session::session(const options& said, context& world)
    : said_(said),
      world_(world),
      wire_(make_client()),
      deadline_(std::chrono::steady_clock::now() +
                (said.timeout.count() > 0 ? said.timeout : std::chrono::nanoseconds(longest_command))) {
  if (wire_->endpoints().empty() && cannot_ask_ == exit_code::done) {
    say(fmt::format("no daemon has a socket under {}; give --endpoint or set BUSBAR_RUN_DIR",
                    world.run_dir.string()));
    cannot_ask_ = exit_code::unreachable;
  }
}

std::unique_ptr<client> session::make_client() {
  std::vector<endpoint> endpoints = endpoints_for(said_, world_);
  tls_texts texts;
  const bool tcp = !endpoints.empty() && !endpoints.front().target.starts_with("unix:");
  const auto read = [this](std::string_view flag, const std::string& path, std::string& text) {
    if (path.empty()) {
      world_.err << fmt::format("busbar: {} needs {} FILE: TCP is served with mutual TLS only\n", said_.endpoint, flag);
      return false;
    }
    auto content = core::read_regular_file(path, core::small_file_bytes);
    if (!content.ok()) {
      world_.err << fmt::format("busbar: {}: {}\n", flag, std::string(content.status().message()));
      return false;
    }
    text = *std::move(content);
    return true;
  };
  if (tcp && !(read("--tls-ca", said_.tls.ca, texts.ca) & read("--tls-cert", said_.tls.cert, texts.cert) &
               read("--tls-key", said_.tls.key, texts.key))) {
    cannot_ask_ = exit_code::usage;
    endpoints.clear();
  }
  return std::make_unique<client>(std::move(endpoints), texts);
}

std::vector<std::size_t> session::everyone() const {
  std::vector<std::size_t> all(wire_->endpoints().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

std::vector<std::size_t> session::holders_of(const std::string& name) const {
  const std::string rack = rack_of(name);
  for (std::size_t i = 0; i < wire_->endpoints().size(); ++i) {
    if (!rack.empty() && wire_->endpoints()[i].instance == rack) return {i};
  }
  return everyone();
}

std::vector<call_result> session::call_all(const std::vector<std::size_t>& whom, const std::string& method,
                                           const google::protobuf::Message& request,
                                           const std::vector<google::protobuf::Message*>& responses) const {
  std::vector<call_result> results(whom.size());
  std::vector<std::jthread> threads;  // each writes its own slot; all are joined before the results are read
  for (std::size_t i = 0; i < whom.size(); ++i) {
    threads.emplace_back([this, i, &whom, &method, &request, &responses, &results] {
      results[i] = wire_->call(whom[i], method, request, *responses[i], call_deadline());
    });
  }
  threads.clear();
  return results;
}

std::optional<std::vector<std::string>> session::names() const {
  std::vector<std::string> result;
  for (const std::string& typed : said_.names) {
    const auto expanded = expand_host_list(typed);
    if (!expanded) {
      world_.err << fmt::format("busbar: '{}' is no host list (r01/c[01-04,07])\n", typed);
      return std::nullopt;
    }
    for (const std::string& name : *expanded) {
      const auto full = manifest::long_name(name);
      if (!full) {
        world_.err << fmt::format("busbar: '{}' is no name (r01, r01/c07, r01/p01, r01/supply, r01/u01, r01/operations/12)\n",
                                  name);
        return std::nullopt;
      }
      result.push_back(*full);
    }
  }
  return result;
}

void session::say(const std::string& text) {
  const auto lock = hold_talk();
  if (told_.insert(text).second) world_.err << "busbar: " << text << "\n";
}

exit_code session::tell(const call_result& result, const std::string& about) {
  const auto& info = result.info;
  const std::string subject = manifest::short_name(info.target().empty() ? about : info.target());
  std::string text = subject.empty() ? "" : subject + ": ";
  if (!info.fault().empty()) text += info.fault() + ": ";
  text += info.message().empty() ? result.message : info.message();
  const auto line = [&text](std::string_view label, const std::string& value) {
    if (!value.empty()) text += fmt::format("\n  {:<9} {}", label, value);
  };
  line("expected", info.expected());
  line("seen", info.seen());
  line("next", info.next_step());
  if (!info.fault().empty()) line("see", "busbar explain " + info.fault());
  for (const auto& error : result.spec_errors.errors()) {
    text += "\n  " + (error.file().empty() ? "" : error.file() + ": ");
    text += (error.key_path().empty() ? "" : error.key_path() + ": ") + error.message();
  }
  say(text);
  return exit_code_of(result.code, info.fault());
}

exit_code session::tell_unreachable(std::size_t endpoint, const call_result& result) {
  const auto& silent = wire_->endpoints()[endpoint];
  say(fmt::format("{}: UNREACHABLE: {} ({})", silent.instance, result.message, silent.target));
  return exit_code::unreachable;
}

std::chrono::milliseconds session::call_deadline() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(said_.call_timeout);
}

exit_code exit_code_of(const listing& all) {
  return all.unreachable.empty() ? exit_code::done : exit_code::unreachable;
}

void print(session& with, kind of, const listing& all) {
  std::ostream& out = with.world().out;
  switch (with.said().format) {
    case output::json:
      out << list_text(std::string(info_of(of).list_kind), all, text_format::json);
      return;
    case output::yaml:
      out << list_text(std::string(info_of(of).list_kind), all, text_format::yaml);
      return;
    case output::name:
      for (const auto& item : all.items) out << item_name(*item) << "\n";
      for (const auto& silent : all.unreachable) {
        with.say(fmt::format("{}: UNREACHABLE: {}", silent.daemon.instance, silent.message));
      }
      return;
    case output::table:
    case output::wide:
      if (all.items.empty() && all.unreachable.empty())
        return with.say(fmt::format("no {}", info_of(of).plural));
      out << table_text(of, all, with.said().format == output::wide, with.world().now());
      return;
  }
}

}  // namespace busbar::cli
