#include "daemon/busbard/wiring_store.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "actors/core/log.hpp"
#include "daemon/busbard/instance_lock.hpp"
#include "storage/disk_room.hpp"
#include "storage/journal_mark.hpp"
#include "storage/rocks_store.hpp"
#include "storage/wal_check.hpp"

namespace busbar::daemon {
namespace {

// A person took the loss upon them: it stands in the journal, under its new id, before anything goes on.
absl::Status record_lost_tail(storage::journal_log& log, const std::string& instance, const std::string& kind,
                              const std::string& lost) {
  journal::Event event;
  event.set_object(instance);
  event.set_kind(kind);
  event.set_type("lost_tail_accepted");
  event.set_severity("error");
  event.set_message(fmt::format("busbard --accept-lost-tail: {}; accounts, passwords and latches of that time may not be "
                                "what is stored",
                                lost));
  event.mutable_principal()->set_name(fmt::format("uid {}", ::geteuid()));
  event.mutable_principal()->set_role("operator");
  core::journal_batch batch;
  batch.events.push_back(std::move(event));
  core::log_warning("lost_tail_accepted", {{"lost", lost}, {"journal_id", log.head().journal_id()}});
  return log.commit(std::move(batch)).status();
}

}  // namespace

actor_config::actor_config() {
  config_file_path.clear();  // CAF would read caf-application.ini of the working directory
  set("scheduler.max-threads", std::size_t{2});
}

core::event_source wired_store::events() const {
  return [log = log_](const journal::Position& from, std::uint64_t to, std::size_t limit) {
    return log->read_events(from, to, limit);
  };
}

absl::Status wired_store::open(const manifest::daemon_config& config, const wire_options& how, const std::string& kind) {
  const std::string mark = (config.state_dir / "journal_id").string();
  storage::rocks_options on_disk;
  on_disk.directory = (config.state_dir / "store").string();
  storage::journal_options options;
  options.clock = storage::machine_instant;
  options.boot_id = storage::machine_boot_id();
  options.evidence_directory = (config.state_dir / "evidence").string();
  if (!how.accept_empty_store) {
    if (auto there = storage::check_store_is_there(mark, on_disk.directory); !there.ok()) return there;
  }
  for (const std::string& folder :
       {config.state_dir.string(), on_disk.directory, options.evidence_directory}) {
    if (auto made = make_private_folder(folder); !made.ok()) return made;
  }
  std::string lost;
  const std::string store_folder = on_disk.directory;
  if (how.accept_lost_tail) {
    if (auto room = storage::check_room(store_folder); !room.ok()) return room;
    auto cut = storage::cut_lost_tail(store_folder);
    if (!cut.ok()) return cut.status();
    lost = *std::move(cut);
    on_disk.logs_were_cut = options.restored = !lost.empty();
    if (lost.empty()) core::log_info("no_tail_is_lost", {{"store", store_folder}});
  }
  auto store = storage::open_rocks_store(std::move(on_disk));
  if (!store.ok()) return store.status();
  store_ = *std::move(store);
  auto log = storage::journal_log::open(store_, std::move(options));
  if (!log.ok()) return log.status();
  log_ = *std::move(log);
  const absl::Status ours = storage::check_store_is_ours(mark, *log_);
  if (!ours.ok() && !how.accept_empty_store) return ours;
  if (!ours.ok()) {
    core::log_warning("other_store_accepted",
                      {{"journal_id", log_->head().journal_id()}, {"why", std::string(ours.message())}});
  }
  if (auto marked = storage::mark_journal(mark, *log_); !marked.ok()) return marked;
  if (!lost.empty()) {
    if (auto told = record_lost_tail(*log_, config.instance, kind, lost); !told.ok()) return told;
    if (auto kept = storage::finish_cut(store_folder); !kept.ok()) return kept;
  }
  auto contents = log_->load();
  if (!contents.ok()) return contents.status();
  core::log_info("store_opened",
                 {{"revision", log_->head().revision()}, {"open_intents", contents->open_intents.size()}});
  core::hub_options hub_options;
  hub_options.history = events();
  hub_ = std::make_shared<core::snapshot_hub>(contents->state, std::move(hub_options));
  auto vault = storage::vault::open(store_, config.vault_key_file.string());
  if (!vault.ok()) return vault.status();
  vault_ = *std::move(vault);
  return absl::OkStatus();
}

// What a member says is shown when it is durable, so that nothing new is shown while nothing is written.
std::string wired_store::may_be_old() const {
  const auto health = log_->health();
  if (health == storage::store_health::serving || health == storage::store_health::shedding) {
    no_writes_since_s_.store(0);
    return {};
  }
  std::int64_t since_s = 0;
  const std::int64_t now_s = storage::machine_instant().wall_ns / 1'000'000'000;
  if (no_writes_since_s_.compare_exchange_strong(since_s, now_s)) since_s = now_s;
  return fmt::format("the store takes no writes since {:%Y-%m-%dT%H:%M:%SZ}; what is shown may be old",
                     fmt::gmtime(static_cast<std::time_t>(since_s)));
}

std::string wired_store::why_degraded() const {
  static_cast<void>(may_be_old());  // looked at every few seconds: so the time of the change is known
  const auto health = log_->health();
  return health == storage::store_health::serving ? std::string() : fmt::format("store is {}", storage::name_of(health));
}

bool wired_store::failed() const { return log_->health() == storage::store_health::failed; }

}  // namespace busbar::daemon
