// The words of the command line and what each calls: the only place that knows CLI11.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "actors/manifest/values.hpp"
#include "daemon/cli/acting.hpp"
#include "daemon/cli/acting_equipment.hpp"
#include "daemon/cli/acting_plant.hpp"
#include "daemon/cli/condition.hpp"
#include "daemon/cli/context.hpp"
#include "daemon/cli/explain.hpp"
#include "daemon/cli/inspecting.hpp"
#include "daemon/cli/leaking.hpp"
#include "daemon/cli/plain_text.hpp"
#include "daemon/cli/reading.hpp"
#include "daemon/cli/readings.hpp"
#include "daemon/cli/watching.hpp"

namespace busbar::cli {
namespace {

const std::map<std::string, output> formats{{"table", output::table},
                                            {"wide", output::wide},
                                            {"json", output::json},
                                            {"yaml", output::yaml},
                                            {"name", output::name}};

CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::nanoseconds& target,
                          const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&target, name](const std::string& text) {
            const auto parsed = manifest::parse_duration(text);
            if (!parsed || parsed->count() == 0)
              throw CLI::ValidationError(name, text + " is not a duration (30s, 20m)");
            target = *parsed;
          },
          help)
      ->type_name("DURATION");
}

void add_common(CLI::App& app, options& said) {
  app.add_option_function<std::string>(
         "-o,--output",
         [&said](const std::string& text) {
           const auto found = formats.find(text);
           if (found == formats.end())
             throw CLI::ValidationError("--output", "'" + text + "' is no format: table, wide, json, yaml or name");
           said.format = found->second;
         },
         "table, wide, json, yaml or name")
      ->type_name("FORMAT");
  app.add_option("--endpoint", said.endpoint, "ask this daemon alone: unix:PATH, PATH or HOST:PORT");
  app.add_option("--tls-ca", said.tls.ca, "for HOST:PORT: the daemon's CA");
  app.add_option("--tls-cert", said.tls.cert, "for HOST:PORT: your certificate");
  app.add_option("--tls-key", said.tls.key, "for HOST:PORT: your key");
  add_duration(app, "--call-timeout", said.call_timeout, "of one call to one daemon (5s)");
}

void add_limit(CLI::App& app, options& said, const std::string& help) {
  app.add_option_function<std::string>(
         "--limit",
         [&said](const std::string& text) {
           constexpr std::size_t most_digits = 7;
           const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
           if (!digits || text.empty() || text.size() > most_digits || std::stoul(text) == 0)
             throw CLI::ValidationError("--limit", "'" + text + "' is no number from 1 to 9999999");
           said.limit = std::stoul(text);
         },
         help)
      ->type_name("N");
  app.add_flag("--all", said.all, "show all there are")->excludes("--limit");
}

void add_waiting(CLI::App& app, options& said) {
  app.add_flag("--wait", said.wait, "wait for the end; the exit code is that of the operation");
  add_duration(app, "--timeout", said.timeout, "give up after this, exit 6");
}

void add_acting(CLI::App& app, options& said, const std::string& what) {
  app.add_option("names", said.names, what)->required();
  app.add_flag("--dry-run", said.dry_run, "check everything, change nothing");
  app.add_flag("-y,--yes", said.yes, "do not ask");
  app.add_option("--reason", said.reason, "stands in the operation and its events");
  app.add_option("--request-id", said.request_id, "a repeated id starts nothing new");
  app.add_option("--etag", said.etag, "only if it is unchanged since");
  add_waiting(app, said);
  add_common(app, said);
}

CLI::App* add_reader(CLI::App& root, options& said, const std::string& verb, const std::string& help) {
  CLI::App* app = root.add_subcommand(verb, help);
  app->add_option("kind", said.kind_word,
                  "racks, nodes, shelves, controllers, valves, pdus, cdus, detectors, endpoints, operations (ops), events, daemons, readings; watch also: cooling")
      ->required();
  app->add_option("names", said.names, "r01, r01/c07, r01/c[01-04]");
  app->add_option("--filter", said.filter, "field=value terms, as status.step=CONFIGURED");
  add_common(*app, said);
  app->callback([&said, verb] { said.command = verb; });
  return app;
}

void add_readers(CLI::App& root, options& said) {
  CLI::App* get_app = add_reader(root, said, "get", "list, one row each");
  get_app->add_flag("-w,--watch", said.watch, "and go on with what changes");
  add_duration(*get_app, "--timeout", said.timeout, "stop watching after this");
  add_limit(*get_app, said, "show so many at most (events: the newest 50)");
  add_reader(root, said, "describe", "everything known of each");
  CLI::App* watch_app =
      add_reader(root, said, "watch", "a live view of racks; a line a change of other kinds");
  add_duration(*watch_app, "--timeout", said.timeout, "stop watching after this");
  CLI::App* wait_app =
      add_reader(root, said, "wait", "until all are as asked: exit 0, 1 if one ends otherwise");
  wait_app->add_option("--for", said.condition, "FIELD=VALUE, as step=VALIDATED; else production or success");
  add_duration(*wait_app, "--timeout", said.timeout, "give up after this, exit 6");
  add_reader(root, said, "diff", "nodes or shelves against what is declared: exit 1 when different");

  CLI::App* explain_app = root.add_subcommand("explain", "what any word that is shown means: a step, state, fault, condition, code; needs no daemon");
  explain_app->add_option("word", said.names, "staged, CERTIFICATE_CHANGED, FLOW_PROVEN, POWER_*, 5")
      ->required();
  add_common(*explain_app, said);
  explain_app->callback([&said] { said.command = "explain"; });

  CLI::App* history_app = root.add_subcommand("history", "what a reading was");
  history_app->add_option("names", said.names, "r01/flow, r01/c07/gpu0/power")->required();
  add_duration(*history_app, "--since", said.since, "how far back (10m)");
  add_duration(*history_app, "--step", said.step, "least, mean and most of each step; else every sample");
  add_common(*history_app, said);
  history_app->callback([&said] { said.command = "history"; });

  for (const auto& [verb, word] : {std::pair{"events", "events"}, std::pair{"ops", "operations"}}) {
    CLI::App* app = root.add_subcommand(
        verb, std::string(verb) == "ops" ? "operations, newest first" : "what happened, newest last");
    app->add_flag("-w,--watch", said.watch, "and go on with what changes");
    app->add_option("--filter", said.filter, "field=value terms");
    add_limit(*app, said, std::string(verb) == "ops" ? "show so many at most" : "show so many at most (50)");
    add_duration(*app, "--timeout", said.timeout, "stop watching after this");
    add_common(*app, said);
    if (std::string(verb) == "ops") {
      CLI::App* cancel = app->add_subcommand("cancel", "end an operation");
      add_acting(*cancel, said, "r01/operations/12");
      cancel->callback([&said] { said.command = "ops cancel"; });
    } else {
      app->add_option("names", said.names, "of these objects and what is under them");
    }
    app->callback([&said, word = std::string(word)] {
      if (!said.command.empty()) return;  // its subcommand spoke
      said.command = "get";
      said.kind_word = word;
    });
  }
}

CLI::App* add_act(CLI::App& group, options& said, const std::string& verb, const std::string& help,
                  const std::string& what) {
  CLI::App* app = group.add_subcommand(verb, help);
  add_acting(*app, said, what);
  app->callback([&said, command = group.get_name() + " " + verb] { said.command = command; });
  return app;
}

CLI::App* add_group(CLI::App& root, const std::string& name, const std::string& help) {
  CLI::App* group = root.add_subcommand(name, help);
  group->require_subcommand(1);
  return group;
}

// What speaks to the interlock itself, at its operator's socket: no daemon of ours stands between.
CLI::App* add_at_interlock(CLI::App& group, options& said, const std::string& verb, const std::string& help,
                           const std::string& what) {
  CLI::App* app = group.add_subcommand(verb, help);
  app->add_option("names", said.names, what)->required();
  app->add_flag("--dry-run", said.dry_run, "look only, and say what would be done");
  app->add_flag("-y,--yes", said.yes, "do not ask");
  app->add_option("--reason", said.reason, "stands in the interlock's record and in the events");
  app->callback([&said, command = group.get_name() + " " + verb] { said.command = command; });
  return app;
}

void add_leak(CLI::App& root, options& said) {
  CLI::App* leak = add_group(root, "leak", "leaks, trips and what watches for them");
  CLI::App* status = leak->add_subcommand("status", "exit 0: all detectors dry and watched; 1: a leak, trip or bypass; 3: unknown");
  status->add_option("names", said.names, "r01");
  add_common(*status, said);
  status->callback([&said] { said.command = "leak status"; });
  add_at_interlock(*leak, said, "reset", "take back a latch or a trip, by a person of busbar-safety",
                   "r01/c07, r01 (a trip of the rack), \"r01/*\" (lost lines)");
  CLI::App* bypass = add_at_interlock(*leak, said, "bypass", "take one detector out of judgement, at most 8h",
                                      "MEMBER DETECTOR, as r01/c07 0_Manifold or r01/cdu01 r01_rope");
  add_duration(*bypass, "--for", said.length, "how long: 4h");
  bypass->add_flag("--end", said.end, "end a bypass")->excludes("--for");
}

CLI::App* add_percent(CLI::App* app, options& said) {
  app->add_option_function<double>(
         "--to",
         [&said](const double& percent) {
           if (!(percent >= 0 && percent <= 100)) throw CLI::ValidationError("--to", "is no percentage from 0 (closed) to 100 (open)");
           said.to_percent = percent;
         },
         "where to: 0 is closed, 100 is open")
      ->type_name("PERCENT");
  return app;
}

void add_equipment(CLI::App& root, options& said) {
  CLI::App* valve = add_group(root, "valve", "move valves, each time under a lease that lapses");
  const char* const which = "r01/supply";
  for (CLI::App* app : {add_act(*valve, said, "open", "open it", which), add_act(*valve, said, "close", "shut it: refused while a host needs its liquid", which),
                        add_percent(add_act(*valve, said, "set", "put a control valve somewhere between", which), said)})
    add_duration(*app, "--lease", said.length, "yours so long, at most 2h (10m)");
  add_act(*valve, said, "release", "give it back before the lease lapses", which);
  CLI::App* power = add_group(root, "power", "outlets of rack PDUs, and what GPUs may draw");
  const char* const outlet = "r01/u01/3, r01/u01/[1-4]";
  add_act(*power, said, "on", "outlets on", outlet);
  add_act(*power, said, "off", "outlets off: refused while running hosts need them", outlet);
  add_act(*power, said, "cycle", "off, read off, and on again", outlet);
  CLI::App* cap = add_act(*power, said, "cap", "limit what each GPU may draw", "r01, r01/c07");
  cap->add_option("--gpu-watts", said.gpu_watts, "each GPU at most this")->type_name("W");
  cap->add_flag("--off", said.off, "take the limit back")->excludes("--gpu-watts");
  add_duration(*cap, "--lease", said.length, "so long (until it is taken back)");
}

void add_plant(CLI::App& root, options& said) {
  CLI::App* cdu = add_group(root, "cdu", "a CDU's set-points, each time under a lease that lapses");
  CLI::App* set = add_act(*cdu, said, "set", "hold it at a supply temperature, a pressure, or both", "cdu01");
  set->add_option("--supply", said.supply_c, "coolant to the racks, degrees Celsius")->type_name("CELSIUS");
  set->add_option("--dp", said.dp_kpa, "pressure difference over the racks")->type_name("KPA");
  add_duration(*set, "--lease", said.length, "yours so long, at most 2h (10m)");
  add_act(*cdu, said, "release", "give it back before the lease lapses", "cdu01");
}

void add_actors(CLI::App& root, options& said) {
  CLI::App* manifest_group = add_group(root, "manifest", "declare racks");
  add_act(*manifest_group, said, "apply", "store what files declare", "folder or files");
  add_act(*manifest_group, said, "diff", "files against what is stored: exit 1 when different",
          "folder or files");
  CLI::App* rack = add_group(root, "rack", "act on racks");
  add_act(*rack, said, "bringup", "from dark to production", "r01, r[01-02]")
      ->add_option("--members", said.members, "compute trays that the run declares: c[01-16]");
  add_act(*rack, said, "shutdown", "down in order, each state read back", "r01");
  CLI::App* status = rack->add_subcommand("status", "exit 0 only in production and healthy");
  status->add_option("names", said.names, "r01");
  add_common(*status, said);
  status->callback([&said] { said.command = "rack status"; });
  CLI::App* node = add_group(root, "node", "act on trays and shelves");
  add_act(*node, said, "retry", "go on at the failed step", "r01/c07, r01/c[01-04]")
      ->add_option("--from", said.from_step, "an earlier step: staged");
  add_act(*node, said, "trust", "accept a changed certificate", "r01/c07")
      ->add_option("--pin", said.pin, "SHA-256 of the certificate");
  add_leak(root, said);
  add_equipment(root, said);
  add_plant(root, said);
  CLI::App* bmc = add_group(root, "bmc", "act on BMCs");
  add_act(*bmc, said, "release", "give the BMC back with its factory password", "r01/c07");
  add_act(*bmc, said, "unlock", "reset the count of refused logins", "r01/c07");
  CLI::App* inspect = bmc->add_subcommand("inspect", "walk a BMC and judge what it says; needs no daemon");
  inspect->add_option("url", said.names, "https://HOST:PORT")->required()->expected(1);
  inspect->add_option("--user", said.user, "log in as");
  inspect->add_option("--pin", said.pin, "SHA-256 of the certificate it must show");
  inspect->add_option("--password-file", said.password_file, "the password's file");
  add_duration(*inspect, "--timeout", said.timeout, "give up after this");
  add_common(*inspect, said);
  inspect->callback([&said] { said.command = "bmc inspect"; });
}

exit_code explain(const options& said, context& world) {
  exit_code code = exit_code::done;
  for (const std::string& name : said.names) {
    const bool json = said.format == output::json;
    const std::string text = json || said.format == output::yaml
                                 ? explain_text(name, json ? text_format::json : text_format::yaml)
                                 : explain_text(name);
    if (!text.empty()) {
      world.out << text;
      continue;
    }
    const std::string like = names_like(name);
    world.err << fmt::format("busbar: nothing is called '{}'; {}: {}\n", name, like.empty() ? "known" : "near it",
                             like.empty() ? names_like("") : like);
    code = exit_code::usage;
  }
  return code;
}

using reader = exit_code (*)(session&, const kind_info&);
using actor = exit_code (*)(session&);

const std::map<std::string, reader> readers{
    {"get", &get}, {"describe", &describe}, {"watch", &watch}, {"wait", &wait}, {"diff", &diff}};
const std::map<std::string, actor> actors{
    {"manifest apply", &manifest_apply}, {"manifest diff", &manifest_diff}, {"rack bringup", &rack_bringup},
    {"rack shutdown", &rack_shutdown},   {"rack status", &rack_status},     {"node retry", &node_retry},
    {"node trust", &node_trust},         {"bmc release", &bmc_release},     {"bmc unlock", &bmc_unlock},
    {"ops cancel", &operation_cancel},   {"leak status", &leak_status},
    {"cdu set", &cdu_set},               {"cdu release", &cdu_release},
    {"valve open", &valve_open},         {"valve close", &valve_close},     {"valve set", &valve_set},
    {"valve release", &valve_release},   {"power on", &power_on},           {"power off", &power_off},
    {"power cycle", &power_cycle},       {"power cap", &power_cap}};

// Readings are no resources: they have no revision, and a name is any beginning of one.
const std::map<std::string, actor> reading_verbs{{"get readings", &get_readings},
                                                 {"watch readings", &watch_readings},
                                                 {"watch cooling", &watch_cooling},
                                                 {"history", &read_history}};

exit_code dispatch_readings(const options& said, context& world, actor verb) {
  session with(said, world);
  return with.cannot_ask() != exit_code::done ? with.cannot_ask() : verb(with);
}

exit_code dispatch(options& said, context& world) {
  if (const std::string wrong = wrong_text(said); !wrong.empty()) {
    world.err << "busbar: " << wrong << "\n";
    return exit_code::usage;
  }
  if (said.command == "explain") return explain(said, world);
  if (said.command == "bmc inspect") return bmc_inspect(said, world);
  if (said.command == "leak reset") return leak_reset(said, world);
  if (said.command == "leak bypass") return leak_bypass(said, world);
  if (const auto about = reading_verbs.find(said.command == "history" ? said.command : said.command + " " + said.kind_word);
      about != reading_verbs.end()) {
    if (said.command == "get" && said.watch) return dispatch_readings(said, world, &watch_readings);
    return dispatch_readings(said, world, about->second);
  }
  const auto act = actors.find(said.command);
  const kind_info* of = kind_named(said.kind_word);
  if (act == actors.end() && of == nullptr) {
    world.err << fmt::format(
        "busbar: '{}' is no kind: racks, nodes, shelves, controllers, valves, pdus, cdus, detectors, endpoints, operations (ops), events, daemons\n",
        said.kind_word);
    return exit_code::usage;
  }
  if (said.command == "wait" && !said.condition.empty()) {
    if (const std::string wrong = wrong_condition(*of, said.condition); !wrong.empty()) {
      world.err << "busbar: --for: " << wrong << "\n";
      return exit_code::usage;
    }
  }
  session with(said, world);
  if (with.cannot_ask() != exit_code::done) return with.cannot_ask();
  if (act != actors.end()) return act->second(with);
  if (said.command == "get" && said.watch) return watch(with, *of);
  return readers.at(said.command)(with, *of);
}

// In our own words where the parser has none of ours: what is wrong, and where help is.
exit_code tell_usage(const CLI::App& app, const CLI::ParseError& error, context& world) {
  std::string command = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty(); command += " " + at->get_name())
    at = at->get_subcommands().front();
  const bool nothing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && app.get_subcommands().empty();
  world.err << fmt::format("busbar: {}\n  help      {} --help\n", nothing ? "say what to do" : error.what(), command);
  return exit_code::usage;
}

std::string footer_text() {
  std::string text = "Exit codes:\n";
  for (const exit_text& one : exit_texts())
    text += fmt::format("  {}  {}\n", static_cast<int>(one.code), one.meaning);
  return text +
         "A name that no daemon holds is 2, by every command. Of several codes the one that must not be missed is given.\n"
         "Names: r01, r01/c07 (compute), r01/s01 (switch), r01/p01 (shelf), r01/m01 (controller), r01/supply (valve),\n"
         "r01/u01 (PDU), cdu01, r01/operations/12; lists: r01/c[01-04,07].\n"
         "BUSBAR_RUN_DIR: the folder with the daemons' sockets (/run/busbar). Any word that is shown: busbar explain WORD.";
}

}  // namespace

exit_code run(const std::vector<std::string>& arguments, context& world) {
  options said;
  CLI::App app("busbar: see and run racks", "busbar");
  app.set_version_flag("--version", "busbar " BUSBAR_VERSION);
  app.set_help_all_flag("--help-all", "this help, and that of every command");
  app.footer(footer_text());
  app.require_subcommand(1);
  add_readers(app, said);
  add_actors(app, said);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, world.out, world.err) == 0 ? exit_code::done : exit_code::usage;
    return tell_usage(app, error, world);
  }
  return dispatch(said, world);
}

}  // namespace busbar::cli
