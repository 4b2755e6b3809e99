#include "actors/core/journal_batch.hpp"

#include <utility>

#include "actors/core/digest.hpp"

namespace busbar::core {

std::string_view name_of(object_kind kind) {
  switch (kind) {
    case object_kind::node: return "node";
    case object_kind::rack: return "rack";
    case object_kind::endpoint: return "endpoint";
    case object_kind::operation: return "operation";
    case object_kind::record: return "record";
    case object_kind::valve: return "valve";
    case object_kind::pdu: return "pdu";
    case object_kind::cdu: return "cdu";
  }
  return "unknown";
}

void journal_batch::put(std::shared_ptr<const journal::Node> node) {
  std::string name = node->name();
  puts.push_back({std::move(name), std::move(node)});
}

void journal_batch::put(std::shared_ptr<const journal::Rack> rack) {
  std::string name = rack->name();
  puts.push_back({std::move(name), std::move(rack)});
}

void journal_batch::put(std::shared_ptr<const journal::Endpoint> endpoint) {
  std::string name = endpoint->name();
  puts.push_back({std::move(name), std::move(endpoint)});
}

void journal_batch::put(std::shared_ptr<const journal::Operation> operation) {
  std::string name = operation->id();
  puts.push_back({std::move(name), std::move(operation)});
}

void journal_batch::put(std::shared_ptr<const journal::Valve> valve) {
  std::string name = valve->name();
  puts.push_back({std::move(name), std::move(valve)});
}

void journal_batch::put(std::shared_ptr<const journal::Pdu> pdu) {
  std::string name = pdu->name();
  puts.push_back({std::move(name), std::move(pdu)});
}

void journal_batch::put(std::shared_ptr<const journal::Cdu> cdu) {
  std::string name = cdu->name();
  puts.push_back({std::move(name), std::move(cdu)});
}

void journal_batch::put_record(std::string name, std::string bytes) {
  puts.push_back({std::move(name), std::make_shared<const std::string>(std::move(bytes))});
}

void journal_batch::erase(object_kind kind, std::string name) { erases.push_back({kind, std::move(name)}); }

bool journal_batch::empty() const {
  return puts.empty() && erases.empty() && events.empty() && intents_opened.empty() && intents_closed.empty() &&
         requests.empty() && evidence.empty() && secrets.empty() && secrets_erased.empty();
}

std::string evidence_name(std::string_view bytes) { return "sha256:" + to_hex(sha256(bytes)); }

}  // namespace busbar::core
