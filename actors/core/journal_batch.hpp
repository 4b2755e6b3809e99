// What a writer hands to the journal: one change of state, written whole or not at all, under one revision. Knows no CAF and
// no store. Filled by one thread, then shared as pointer-to-const.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "busbar/journal/event.pb.h"
#include "busbar/journal/plant.pb.h"
#include "busbar/journal/state.pb.h"

namespace busbar::core {

// Numbers are on disk: added, never changed. `record` is for small facts that are no resource (counters, the daemon's uuid).
enum class object_kind : std::uint8_t { node = 1, rack = 2, endpoint = 3, operation = 4, record = 5, valve = 6, pdu = 7, cdu = 8 };
// The newest; a key of a higher number is of a later release.
inline constexpr object_kind last_object_kind = object_kind::cdu;

std::string_view name_of(object_kind kind);

// Alternatives stand in the order of object_kind.
using journal_object = std::variant<std::shared_ptr<const journal::Node>, std::shared_ptr<const journal::Rack>,
                                    std::shared_ptr<const journal::Endpoint>,
                                    std::shared_ptr<const journal::Operation>, std::shared_ptr<const std::string>,
                                    std::shared_ptr<const journal::Valve>, std::shared_ptr<const journal::Pdu>,
                                    std::shared_ptr<const journal::Cdu>>;

struct journal_put {
  std::string name;
  journal_object object;
  object_kind kind() const { return static_cast<object_kind>(object.index() + 1); }
};

struct journal_erase {
  object_kind kind;
  std::string name;
};

// A mutation answered once: remembered for 24 h beside the change it made.
struct journal_request {
  std::string request_id;
  std::string body_digest;   // SHA-256 of the request's body
  std::string operation_id;
};

// A secret as the vault sealed it (storage/vault.hpp); rides in the batch of the intent it belongs to.
struct sealed_secret {
  std::string name;
  std::string bytes;
};

struct journal_batch {
  std::vector<journal_put> puts;
  std::vector<journal_erase> erases;
  std::vector<journal::Event> events;        // the journal fills in position, times, boot, schema, audit chain, index
  std::vector<journal::Intent> intents_opened;  // the journal fills in opened_revision
  std::vector<std::string> intents_closed;   // ids
  std::vector<journal_request> requests;
  std::vector<std::shared_ptr<const std::string>> evidence;  // named by evidence_name(), durable before the batch
  std::vector<sealed_secret> secrets;
  std::vector<std::string> secrets_erased;
  bool safety = false;                       // may use the room that is kept back for trips

  void put(std::shared_ptr<const journal::Node> node);
  void put(std::shared_ptr<const journal::Rack> rack);
  void put(std::shared_ptr<const journal::Endpoint> endpoint);
  void put(std::shared_ptr<const journal::Operation> operation);  // by its id
  void put(std::shared_ptr<const journal::Valve> valve);
  void put(std::shared_ptr<const journal::Pdu> pdu);
  void put(std::shared_ptr<const journal::Cdu> cdu);
  void put_record(std::string name, std::string bytes);
  void erase(object_kind kind, std::string name);
  bool empty() const;
};

// "sha256:<64 hex>": how evidence is called in results and events.
std::string evidence_name(std::string_view bytes);

// What the writer gets, after the sync. A batch whose request id was already answered (same body) changes nothing and names
// the operation of the first time.
struct commit_result {
  journal::Position position;
  std::string earlier_operation_id;
};

// A batch as it stands in the journal; what the snapshot hub publishes.
struct committed_batch {
  journal::Position position;
  std::shared_ptr<const journal_batch> batch;
  std::vector<std::shared_ptr<const journal::Event>> events;  // complete
};

}  // namespace busbar::core
