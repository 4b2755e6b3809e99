// A seeded stream of batches and what the store must hold after any number of them. Shared by the kill and fault tests and by
// the child process that is killed.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/core/journal_batch.hpp"
#include "storage/journal_log.hpp"

namespace busbar::storage::model {

inline journal_options options() {
  journal_options chosen;
  chosen.clock = [] { return core::instant{1, 1'767'225'600'000'000'000}; };
  chosen.boot_id = "boot";
  return chosen;
}

// The number-th batch (from 1) of a seed.
inline core::journal_batch batch(std::uint64_t seed, std::uint64_t number) {
  std::mt19937_64 random(seed * 1'000'003 + number);
  core::journal_batch made;
  const std::uint64_t nodes = 1 + random() % 4;
  for (std::uint64_t i = 0; i < nodes; ++i) {
    auto node = std::make_shared<journal::Node>();
    node->set_name(fmt::format("r01/c{:02}", random() % 18));
    node->set_uid(fmt::format("{}-{}", seed, number));
    node->set_waits_for(std::string(random() % 400, 'w'));
    made.put(std::move(node));
  }
  if (random() % 5 == 0) made.erase(core::object_kind::node, fmt::format("r01/c{:02}", random() % 18));
  journal::Event event;
  event.set_object("r01");
  event.set_kind("rack");
  event.set_message(fmt::format("batch {}", number));
  made.events.push_back(event);
  journal::Intent intent;
  intent.set_id(fmt::format("r01/reset/{}", number));
  made.intents_opened.push_back(intent);
  if (number > 3) made.intents_closed.push_back(fmt::format("r01/reset/{}", number - 3));
  return made;
}

struct contents {
  std::map<std::string, std::string> nodes;  // name -> uid of the batch that wrote it last
  std::set<std::string> intents;
  std::vector<std::string> events;           // messages
  bool operator==(const contents&) const = default;
};

inline void apply(contents& state, const core::journal_batch& made) {
  for (const auto& put : made.puts) {
    state.nodes[put.name] = std::get<std::shared_ptr<const journal::Node>>(put.object)->uid();
  }
  for (const auto& erase : made.erases) state.nodes.erase(erase.name);
  for (const auto& intent : made.intents_opened) state.intents.insert(intent.id());
  for (const auto& id : made.intents_closed) state.intents.erase(id);
  for (const auto& event : made.events) state.events.push_back(event.message());
}

inline contents expected(std::uint64_t seed, std::uint64_t count) {
  contents state;
  for (std::uint64_t number = 1; number <= count; ++number) apply(state, batch(seed, number));
  return state;
}

inline absl::StatusOr<contents> held_by(const journal_log& log) {
  contents state;
  const auto loaded = log.load();
  if (!loaded.ok()) return loaded.status();
  for (const auto& [name, entry] : *loaded->state->nodes) state.nodes[name] = entry.object->uid();
  for (const journal::Intent& intent : loaded->open_intents) state.intents.insert(intent.id());
  const auto events = log.read_events(log.oldest(), log.head().revision(), SIZE_MAX);
  if (!events.ok()) return events.status();
  for (const auto& event : *events) {
    if (event->type() != "erased") state.events.push_back(event->message());
  }
  return state;
}

}  // namespace busbar::storage::model
