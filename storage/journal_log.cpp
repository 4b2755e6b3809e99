#include "storage/journal_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "actors/core/digest.hpp"
#include "actors/core/errors.hpp"
#include "actors/core/mutant.hpp"
#include "storage/evidence.hpp"
#include "storage/key_codec.hpp"
#include "storage/migrations.hpp"

namespace busbar::storage {
namespace {

absl::Status damaged(std::string_view what) { return core::make_fault(core::fault::STORE_DAMAGED, what); }

absl::Status refused(std::string_view why) {
  return absl::InvalidArgumentError({why.data(), why.size()});
}

std::string serialised(const core::journal_object& object) {
  return std::visit(
      [](const auto& pointer) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(*pointer)>, std::string>) {
          return *pointer;
        } else {
          return pointer->SerializeAsString();
        }
      },
      object);
}

bool is_null(const core::journal_object& object) {
  return std::visit([](const auto& pointer) { return pointer == nullptr; }, object);
}

// An act of a person, or of a program on a person's behalf: kept for audit. What the daemon does by itself is an event only.
bool is_audited(const journal::Event& event) { return event.principal().role() != "system"; }

absl::Status check(const core::journal_batch& batch) {
  for (const core::journal_put& put : batch.puts) {
    if (put.name.empty()) return refused("a batch puts an object without a name");
    if (is_null(put.object)) return refused(fmt::format("a batch puts nothing under {}", put.name));
  }
  for (const core::journal_erase& erase : batch.erases) {
    if (erase.name.empty()) return refused("a batch erases an object without a name");
  }
  for (const journal::Intent& intent : batch.intents_opened) {
    if (intent.id().empty()) return refused("a batch opens an intent without an id");
  }
  for (const core::journal_request& request : batch.requests) {
    if (request.request_id.empty()) return refused("a batch answers a request without an id");
  }
  for (const auto& bytes : batch.evidence) {
    if (bytes == nullptr) return refused("a batch names evidence without content");
  }
  for (const core::sealed_secret& sealed : batch.secrets) {
    if (sealed.name.empty()) return refused("a batch holds a secret without a name");
  }
  return absl::OkStatus();
}

template <class Message>
absl::Status load_kind(const store& from, core::object_kind kind,
                       std::shared_ptr<const core::object_map<Message>>& into) {
  auto objects = std::make_shared<core::object_map<Message>>();
  const auto [first, last] = state_range(kind);
  absl::Status failed;
  const absl::Status scanned = from.scan(family::state, first, last, [&](std::string_view key, std::string_view value) {
    const auto parsed = parse_state_value(value);
    auto object = std::make_shared<Message>();
    bool good = parsed.has_value();
    if constexpr (std::is_same_v<Message, std::string>) {
      if (good) object->assign(parsed->object);
    } else {
      good = good && object->ParseFromArray(parsed->object.data(), static_cast<int>(parsed->object.size()));
    }
    if (!good) {
      failed = damaged(fmt::format("the stored {} '{}' cannot be decoded", core::name_of(kind), key.substr(1)));
      return false;
    }
    if constexpr (std::is_same_v<Message, journal::Node>) {
      if (BUSBAR_MUTANT(intent_dropped_at_restart)) object->clear_intents();
    }
    objects->emplace_hint(objects->end(), std::string(key.substr(1)),
                          core::versioned<Message>{parsed->revision, std::move(object)});
    return true;
  });
  if (!scanned.ok()) return scanned;
  into = std::move(objects);
  return failed;
}

}  // namespace

struct journal_log::group {
  store_write write;
  journal::JournalHead next;
  core::instant now;
  bool safety_only = false;  // the store refuses all else
  std::vector<journal::RequestRecord> requests;
  std::vector<absl::StatusOr<outcome>> outcomes;
};

journal_log::journal_log(std::shared_ptr<store> below, journal_options options)
    : store_(std::move(below)), options_(std::move(options)) {}

absl::StatusOr<std::shared_ptr<journal_log>> journal_log::open(std::shared_ptr<store> below, journal_options options) {
  if (const absl::Status done = migrate(*below, migrations(), schema_version); !done.ok()) return done;
  if (!options.evidence_directory.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.evidence_directory, error);
    if (error) {
      return core::make_fault(core::fault::STORE_READ_ONLY, fmt::format("make the folder of evidence {}: {}",
                                                                        options.evidence_directory, error.message()));
    }
  }
  std::shared_ptr<journal_log> log(new journal_log(std::move(below), std::move(options)));
  if (const absl::Status done = log->read_head(); !done.ok()) return done;
  if (const absl::Status done = log->read_identity(); !done.ok()) return done;
  if (const absl::Status done = log->read_requests(); !done.ok()) return done;
  if (const absl::Status done = log->read_candidates(); !done.ok()) return done;
  log->sweep_at_start();
  return log;
}

absl::Status journal_log::read_head() {
  const auto stored = store_->get(family::meta, head_key());
  if (!stored.ok()) return stored.status();
  if (!stored->has_value()) {
    head_.set_oldest_revision(1);
    return absl::OkStatus();
  }
  if (!head_.ParseFromString(**stored)) return damaged("the journal's head cannot be decoded");
  return absl::OkStatus();
}

absl::Status journal_log::read_identity() {
  const auto stored = store_->get(family::meta, identity_key());
  if (!stored.ok()) return stored.status();
  if (!stored->has_value()) {
    if (head_.revision() != 0) return damaged("the store holds a journal without identity");
    return make_identity(false);
  }
  if (!identity_.ParseFromString(**stored)) return damaged("the journal's identity cannot be decoded");
  return options_.restored ? make_identity(true) : absl::OkStatus();
}

absl::Status journal_log::make_identity(bool from_parent) {
  if (from_parent) {
    journal::JournalIdentity::Parent* parent = identity_.add_parents();
    parent->set_journal_id(identity_.journal_id());
    parent->set_revision(head_.revision());
  }
  identity_.set_journal_id(new_uuid());
  identity_.set_created_wall_ns(options_.clock().wall_ns);
  store_write write;
  write.put(family::meta, identity_key(), identity_.SerializeAsString());
  return store_->write(write);
}

absl::Status journal_log::read_requests() {
  const auto [first, last] = request_range();
  absl::Status failed;
  const absl::Status scanned = store_->scan(
      family::meta, first, last, [this, &failed](std::string_view key, std::string_view value) {
        journal::RequestRecord record;
        if (!record.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
          failed = damaged(fmt::format("the stored '{}' cannot be decoded", key));
          return false;
        }
        if (oldest_request_wall_ns_ == 0 || record.wall_time_ns() < oldest_request_wall_ns_) {
          oldest_request_wall_ns_ = record.wall_time_ns();
        }
        requests_.insert_or_assign(record.request_id(), std::move(record));
        return true;
      });
  return scanned.ok() ? failed : scanned;
}

absl::StatusOr<journal_contents> journal_log::load() const {
  auto state = std::make_shared<core::snapshot>();
  state->position = head();
  absl::Status done = load_kind(*store_, core::object_kind::node, state->nodes);
  if (done.ok()) done = load_kind(*store_, core::object_kind::rack, state->racks);
  if (done.ok()) done = load_kind(*store_, core::object_kind::endpoint, state->endpoints);
  if (done.ok()) done = load_kind(*store_, core::object_kind::operation, state->operations);
  if (done.ok()) done = load_kind(*store_, core::object_kind::record, state->records);
  if (done.ok()) done = load_kind(*store_, core::object_kind::valve, state->valves);
  if (done.ok()) done = load_kind(*store_, core::object_kind::pdu, state->pdus);
  if (done.ok()) done = load_kind(*store_, core::object_kind::cdu, state->cdus);
  if (!done.ok()) return done;
  journal_contents contents;
  absl::Status failed;
  done = store_->scan(family::intents, {}, {}, [&contents, &failed](std::string_view key, std::string_view value) {
    journal::Intent intent;
    if (!intent.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
      failed = damaged(fmt::format("the open intent '{}' cannot be decoded", key));
      return false;
    }
    contents.open_intents.push_back(std::move(intent));
    return true;
  });
  if (!done.ok()) return done;
  if (!failed.ok()) return failed;
  if (BUSBAR_MUTANT(intent_dropped_at_restart)) contents.open_intents.clear();
  std::stable_sort(contents.open_intents.begin(), contents.open_intents.end(),
                   [](const journal::Intent& left, const journal::Intent& right) {
                     return left.opened_revision() < right.opened_revision();
                   });
  contents.state = std::move(state);
  return contents;
}

std::vector<absl::StatusOr<journal_log::outcome>> journal_log::commit_many(
    std::span<const std::shared_ptr<const core::journal_batch>> batches) {
  group into;
  into.next = head_copy();
  const std::uint64_t head_revision = into.next.revision();
  into.next.set_revision(head_revision + lost_revisions_);
  into.now = options_.clock();
  into.safety_only = store_->health() == store_health::read_only;
  into.next.set_wall_time_ns(into.now.wall_ns);
  into.outcomes.reserve(batches.size());
  for (const auto& batch : batches) into.outcomes.push_back(stage(into, batch));
  if (into.write.empty()) return std::move(into.outcomes);
  into.write.put(family::meta, head_key(), into.next.SerializeAsString());
  const absl::Status written = store_->write(into.write);
  if (written.ok()) {
    settle(into);
    return std::move(into.outcomes);
  }
  // What a refused write used up is never used again: should its bytes surface after a crash, they collide with nothing.
  lost_revisions_ = into.next.revision() - head_revision;
  for (auto& result : into.outcomes) {
    if (result.ok() && result->commit.batch != nullptr) result = written;
  }
  return std::move(into.outcomes);
}

absl::StatusOr<journal_log::outcome> journal_log::commit(core::journal_batch batch) {
  const std::shared_ptr<const core::journal_batch> one = std::make_shared<core::journal_batch>(std::move(batch));
  return std::move(commit_many({&one, 1}).front());
}

void journal_log::settle(group& written) {
  for (journal::RequestRecord& record : written.requests) {
    if (oldest_request_wall_ns_ == 0) oldest_request_wall_ns_ = record.wall_time_ns();
    requests_.insert_or_assign(record.request_id(), std::move(record));
  }
  lost_revisions_ = 0;
  const std::scoped_lock lock(mutex_);
  head_ = std::move(written.next);
}

absl::StatusOr<journal_log::outcome> journal_log::stage(group& into,
                                                        const std::shared_ptr<const core::journal_batch>& batch) {
  if (batch == nullptr) return refused("there is no batch");
  if (const absl::Status done = check(*batch); !done.ok()) return done;
  if (into.safety_only && !batch->safety) {
    return core::make_fault(core::fault::STORE_READ_ONLY, "the store refuses writes until the disk has space again; "
                                                          "nothing was written");
  }
  outcome result;
  *result.commit.position.mutable_journal_id() = identity_.journal_id();
  for (const core::journal_request& request : batch->requests) {
    for (const journal::RequestRecord& earlier : into.requests) {
      if (earlier.request_id() == request.request_id) {
        return core::make_fault(core::fault::REQUEST_ID_REUSED,
                                fmt::format("request {} was sent twice at once", request.request_id));
      }
    }
    const auto known = find_request(request.request_id, request.body_digest);
    if (!known.ok()) return known.status();
    if (const auto found = requests_.find(request.request_id); !known->empty() && found != requests_.end()) {
      result.commit.position.set_revision(found->second.revision());
      result.earlier_operation_id = *known;
      return result;
    }
  }
  if (const absl::Status done = write_evidence_files(*batch); !done.ok()) return done;
  into.next.set_revision(into.next.revision() + 1);
  result.commit.position.set_revision(into.next.revision());
  stage_state(into, *batch);
  stage_events(into, *batch, result.commit);
  stage_rest(into, *batch);
  into.write.safety = into.write.safety || batch->safety;
  result.commit.batch = batch;
  return result;
}

void journal_log::stage_state(group& into, const core::journal_batch& batch) const {
  for (const core::journal_put& put : batch.puts) {
    into.write.put(family::state, state_key(put.kind(), put.name),
                   state_value(into.next.revision(), serialised(put.object)));
  }
  for (const core::journal_erase& erase : batch.erases) {
    into.write.erase(family::state, state_key(erase.kind, erase.name));
  }
}

void journal_log::stage_events(group& into, const core::journal_batch& batch, core::committed_batch& commit) const {
  commit.events.reserve(batch.events.size() + batch.erases.size());
  for (const journal::Event& event : batch.events) stage_event(into, event, commit);
  // A watcher that reads history must learn of what is gone: nothing else of it is left.
  for (const core::journal_erase& erase : batch.erases) {
    journal::Event event;
    const std::string_view kind = core::name_of(erase.kind);
    event.set_kind(kind.data(), kind.size());
    event.set_object(erase.name);
    event.set_type("erased");
    event.set_severity("info");
    stage_event(into, std::move(event), commit);
  }
}

void journal_log::stage_event(group& into, journal::Event event, core::committed_batch& commit) const {
  *event.mutable_position() = commit.position;
  event.set_wall_time_ns(into.now.wall_ns);
  event.set_boot_id(options_.boot_id);
  event.set_monotonic_ns(into.now.monotonic_ns);
  event.set_schema_version(schema_version);
  event.set_index_in_batch(static_cast<std::uint32_t>(commit.events.size()));
  if (!event.has_principal()) {
    event.mutable_principal()->set_name("daemon");
    event.mutable_principal()->set_role("system");
  }
  event.set_previous_audit_digest(into.next.audit_digest());
  const std::string key = event_key(into.next.revision(), event.index_in_batch());
  std::string bytes = event.SerializeAsString();
  if (is_audited(event)) {
    into.next.set_audit_digest(core::sha256(bytes));
    if (into.next.oldest_audit_wall_ns() == 0) into.next.set_oldest_audit_wall_ns(into.now.wall_ns);
    into.write.put(family::audit, key, bytes);
  }
  for (const std::string& name : evidence_named_in(bytes)) {
    into.write.put(family::evidence, reference_key(name, false, key), {});
    if (is_audited(event)) into.write.put(family::evidence, reference_key(name, true, key), {});
  }
  into.write.put(family::events, key, std::move(bytes));
  into.next.set_event_count(into.next.event_count() + 1);
  if (into.next.oldest_event_wall_ns() == 0) into.next.set_oldest_event_wall_ns(into.now.wall_ns);
  commit.events.push_back(std::make_shared<const journal::Event>(std::move(event)));
}

void journal_log::stage_rest(group& into, const core::journal_batch& batch) {
  for (journal::Intent intent : batch.intents_opened) {
    intent.set_opened_revision(into.next.revision());
    into.write.put(family::intents, intent.id(), intent.SerializeAsString());
  }
  for (const std::string& id : batch.intents_closed) into.write.erase(family::intents, id);
  for (const core::journal_request& request : batch.requests) {
    journal::RequestRecord record;
    record.set_request_id(request.request_id);
    record.set_body_digest(request.body_digest);
    record.set_operation_id(request.operation_id);
    record.set_revision(into.next.revision());
    record.set_wall_time_ns(into.now.wall_ns);
    into.write.put(family::meta, request_key(request.request_id), record.SerializeAsString());
    into.requests.push_back(std::move(record));
  }
  for (const auto& bytes : batch.evidence) {
    const std::string name = core::evidence_name(*bytes);
    note_candidate(name);
    into.write.put(family::evidence, candidate_key(name), {});
    into.write.put(family::evidence, name, is_kept_as_file(*bytes) ? "f" + encode_u64(bytes->size()) : "i" + *bytes);
  }
  for (const core::sealed_secret& sealed : batch.secrets) into.write.put(family::vault, sealed.name, sealed.bytes);
  for (const std::string& name : batch.secrets_erased) into.write.erase(family::vault, name);
}

absl::Status journal_log::write_evidence_files(const core::journal_batch& batch) {
  if (const absl::Status done = announce_evidence_files(batch); !done.ok()) return done;
  for (const auto& bytes : batch.evidence) {
    if (!is_kept_as_file(*bytes)) continue;
    const absl::Status done =
        write_evidence_file(options_.evidence_directory, core::evidence_name(*bytes), *bytes);
    if (!done.ok()) return done;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> journal_log::find_request(std::string_view request_id, std::string_view body_digest) const {
  const auto found = requests_.find(std::string(request_id));
  if (found == requests_.end()) return std::string();
  const journal::RequestRecord& record = found->second;
  const std::chrono::nanoseconds age(options_.clock().wall_ns - record.wall_time_ns());
  if (age > options_.kept_request_age) return std::string();
  if (record.body_digest() != body_digest) {
    return core::make_fault(core::fault::REQUEST_ID_REUSED,
                            fmt::format("request {} was made before with another body, as {}; nothing was done",
                                        request_id, record.operation_id()));
  }
  return record.operation_id();
}

}  // namespace busbar::storage
