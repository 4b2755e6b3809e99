#include "actors/core/snapshot_hub.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>
#include <type_traits>
#include <utility>

#include "actors/core/errors.hpp"

namespace busbar::core {
namespace {

template <class Message>
std::shared_ptr<const Message> find_in(const object_map<Message>& objects, std::string_view name) {
  const auto found = objects.find(name);
  return found == objects.end() ? nullptr : found->second.object;
}

// The maps of a snapshot in the making; a kind is copied (pointers only) when it is touched for the first time.
template <class Message>
class touched {
 public:
  explicit touched(std::shared_ptr<const object_map<Message>>& target) : target_(target) {}
  object_map<Message>& mutate() {
    if (copy_ == nullptr) copy_ = std::make_shared<object_map<Message>>(*target_);
    return *copy_;
  }
  void finish() {
    if (copy_ != nullptr) target_ = std::move(copy_);
  }

 private:
  std::shared_ptr<const object_map<Message>>& target_;
  std::shared_ptr<object_map<Message>> copy_;
};

std::size_t items_in(const committed_batch& commit) {
  return commit.batch->puts.size() + commit.batch->erases.size() + commit.events.size();
}

bool under(std::string_view name, std::string_view prefix) {
  if (prefix.empty()) return true;
  if (!name.starts_with(prefix)) return false;
  return name.size() == prefix.size() || name[prefix.size()] == '/';
}

bool wants_kind(const watch_filter& filter, object_kind kind) {
  return filter.kinds.empty() || std::find(filter.kinds.begin(), filter.kinds.end(), kind) != filter.kinds.end();
}

std::optional<object_kind> kind_of(std::string_view event_kind) {
  if (event_kind == "node" || event_kind == "shelf") return object_kind::node;
  if (event_kind == "rack" || event_kind == "spec") return object_kind::rack;
  if (event_kind == "endpoint") return object_kind::endpoint;
  if (event_kind == "operation") return object_kind::operation;
  if (event_kind == "record") return object_kind::record;
  if (event_kind == "valve") return object_kind::valve;
  if (event_kind == "pdu") return object_kind::pdu;
  if (event_kind == "cdu" || event_kind == "plant") return object_kind::cdu;
  return std::nullopt;
}

bool wants(const watch_filter& filter, const journal::Event& event) {
  if (!under(event.object(), filter.object_prefix)) return false;
  if (filter.kinds.empty()) return true;
  const auto kind = kind_of(event.kind());
  return kind.has_value() && wants_kind(filter, *kind);
}

// An operation is also seen by those who watch its target.
bool wants(const watch_filter& filter, std::string_view name, const journal_object& object) {
  if (!filter.objects || !wants_kind(filter, static_cast<object_kind>(object.index() + 1))) return false;
  if (under(name, filter.object_prefix)) return true;
  const auto* operation = std::get_if<std::shared_ptr<const journal::Operation>>(&object);
  return operation != nullptr && under((*operation)->target(), filter.object_prefix);
}

journal::Position position_at(const std::string& journal_id, std::uint64_t revision) {
  journal::Position position;
  position.set_journal_id(journal_id);
  position.set_revision(revision);
  return position;
}

void add_items(const committed_batch& commit, const watch_filter& filter, std::vector<watch_item>& items) {
  const std::uint64_t revision = commit.position.revision();
  const std::size_t before = items.size();
  // Until the last item of a revision is out, the place to go on from is the revision before it.
  const journal::Position resume = position_at(commit.position.journal_id(), revision - 1);
  for (const journal_put& put : commit.batch->puts) {
    if (!wants(filter, put.name, put.object)) continue;
    items.push_back({watch_item::type::changed, resume, revision, nullptr, put.kind(), put.name, put.object});
  }
  for (const journal_erase& erase : commit.batch->erases) {
    if (!filter.objects || !wants_kind(filter, erase.kind) || !under(erase.name, filter.object_prefix)) continue;
    items.push_back({watch_item::type::erased, resume, revision, nullptr, erase.kind, erase.name, std::nullopt});
  }
  for (const auto& event : commit.events) {
    if (!filter.events || !wants(filter, *event)) continue;
    items.push_back({watch_item::type::event, resume, revision, event, object_kind::record, {}, std::nullopt});
  }
  if (items.size() > before) items.back().position = commit.position;
}

// Old events, out of the history: what they tell of, and what they tell is gone.
void add_history(const std::vector<std::shared_ptr<const journal::Event>>& events, const std::string& journal_id,
                 const watch_filter& filter, std::vector<watch_item>& items) {
  for (const auto& event : events) {
    if (!wants(filter, *event)) continue;
    const std::uint64_t revision = event->position().revision();
    const journal::Position resume = position_at(journal_id, revision - 1);
    if (const auto kind = kind_of(event->kind()); filter.objects && kind.has_value() && event->type() == "erased") {
      items.push_back({watch_item::type::erased, resume, revision, nullptr, *kind, event->object(), std::nullopt});
    }
    if (filter.events) {
      items.push_back({watch_item::type::event, resume, revision, event, object_kind::record, {}, std::nullopt});
    }
  }
}

template <class Message>
void add_changed(const object_map<Message>& objects, std::uint64_t after, std::uint64_t up_to,
                 const journal::Position& resume, const watch_filter& filter, std::vector<watch_item>& items) {
  for (const auto& [name, entry] : objects) {
    if (entry.revision <= after || entry.revision > up_to) continue;
    const journal_object object = entry.object;
    if (!wants(filter, name, object)) continue;
    items.push_back({watch_item::type::changed, resume, entry.revision, nullptr,
                     static_cast<object_kind>(object.index() + 1), name, object});
  }
}

}  // namespace

snapshot::snapshot()
    : nodes(std::make_shared<const object_map<journal::Node>>()),
      racks(std::make_shared<const object_map<journal::Rack>>()),
      endpoints(std::make_shared<const object_map<journal::Endpoint>>()),
      operations(std::make_shared<const object_map<journal::Operation>>()),
      records(std::make_shared<const object_map<std::string>>()),
      valves(std::make_shared<const object_map<journal::Valve>>()),
      pdus(std::make_shared<const object_map<journal::Pdu>>()),
      cdus(std::make_shared<const object_map<journal::Cdu>>()) {}

std::shared_ptr<const journal::Node> snapshot::node(std::string_view name) const { return find_in(*nodes, name); }
std::shared_ptr<const journal::Rack> snapshot::rack(std::string_view name) const { return find_in(*racks, name); }
std::shared_ptr<const journal::Endpoint> snapshot::endpoint(std::string_view name) const {
  return find_in(*endpoints, name);
}
std::shared_ptr<const journal::Operation> snapshot::operation(std::string_view id) const {
  return find_in(*operations, id);
}
std::shared_ptr<const std::string> snapshot::record(std::string_view name) const { return find_in(*records, name); }
std::shared_ptr<const journal::Valve> snapshot::valve(std::string_view name) const { return find_in(*valves, name); }
std::shared_ptr<const journal::Pdu> snapshot::pdu(std::string_view name) const { return find_in(*pdus, name); }
std::shared_ptr<const journal::Cdu> snapshot::cdu(std::string_view name) const { return find_in(*cdus, name); }

std::shared_ptr<const snapshot> advance(const snapshot& before, std::span<const committed_batch> commits) {
  auto after = std::make_shared<snapshot>(before);
  touched nodes(after->nodes);
  touched racks(after->racks);
  touched endpoints(after->endpoints);
  touched operations(after->operations);
  touched records(after->records);
  touched valves(after->valves);
  touched pdus(after->pdus);
  touched cdus(after->cdus);
  for (const committed_batch& commit : commits) {
    const std::uint64_t revision = commit.position.revision();
    for (const journal_put& put : commit.batch->puts) {
      const auto store = [&put, revision](auto& kind, const auto& object) {
        kind.mutate().insert_or_assign(put.name, typename std::decay_t<decltype(kind.mutate())>::mapped_type{
                                                     revision, object});
      };
      switch (put.kind()) {
        case object_kind::node: store(nodes, std::get<0>(put.object)); break;
        case object_kind::rack: store(racks, std::get<1>(put.object)); break;
        case object_kind::endpoint: store(endpoints, std::get<2>(put.object)); break;
        case object_kind::operation: store(operations, std::get<3>(put.object)); break;
        case object_kind::record: store(records, std::get<4>(put.object)); break;
        case object_kind::valve: store(valves, std::get<5>(put.object)); break;
        case object_kind::pdu: store(pdus, std::get<6>(put.object)); break;
        case object_kind::cdu: store(cdus, std::get<7>(put.object)); break;
      }
    }
    for (const journal_erase& erase : commit.batch->erases) {
      switch (erase.kind) {
        case object_kind::node: nodes.mutate().erase(erase.name); break;
        case object_kind::rack: racks.mutate().erase(erase.name); break;
        case object_kind::endpoint: endpoints.mutate().erase(erase.name); break;
        case object_kind::operation: operations.mutate().erase(erase.name); break;
        case object_kind::record: records.mutate().erase(erase.name); break;
        case object_kind::valve: valves.mutate().erase(erase.name); break;
        case object_kind::pdu: pdus.mutate().erase(erase.name); break;
        case object_kind::cdu: cdus.mutate().erase(erase.name); break;
      }
    }
    after->position = commit.position;
  }
  nodes.finish();
  racks.finish();
  endpoints.finish();
  operations.finish();
  records.finish();
  valves.finish();
  pdus.finish();
  cdus.finish();
  return after;
}

// All fields but the constant ones are guarded by the hub's mutex.
struct subscription::state {
  std::shared_ptr<snapshot_hub::core> hub;
  const watch_filter filter;
  const watch_options options;
  const std::function<void()> wake;

  std::uint64_t start = 0;         // where it began; objects changed since are told once when history has been read
  std::uint64_t cursor = 0;        // all up to here was taken
  std::uint64_t told = 0;          // position of the last item or bookmark
  std::uint64_t cursor_items = 0;  // the hub's item count at cursor, once live
  bool from_history = false;       // started before what is held in memory
  bool live = false;               // has been at the head once: may lag by queue_limit from now on
  bool armed = false;              // waits for wake
  absl::Status ended;
};

struct snapshot_hub::core {
  struct held {
    committed_batch commit;
    std::uint64_t items_before;  // the hub's item count before this one
  };

  mutable std::mutex mutex;
  std::shared_ptr<const snapshot> current;
  std::deque<held> ring;           // newest commits; covers (floor, head]
  std::uint64_t floor = 0;
  std::uint64_t total_items = 0;
  std::vector<std::weak_ptr<subscription::state>> watchers;
  bool closed = false;
  hub_options options;

  std::uint64_t head() const { return current->position.revision(); }
  std::deque<held>::const_iterator after(std::uint64_t revision) const {
    return std::upper_bound(ring.begin(), ring.end(), revision, [](std::uint64_t wanted, const held& entry) {
      return wanted < entry.commit.position.revision();
    });
  }
  std::uint64_t items_at(std::uint64_t revision) const {
    const auto next = after(revision);
    return next == ring.end() ? total_items : next->items_before;
  }
  std::size_t held_items() const { return ring.empty() ? 0 : total_items - ring.front().items_before; }
  void hold(const committed_batch& commit) {
    ring.push_back({commit, total_items});
    total_items += items_in(commit);
    while (ring.size() > 1 && held_items() > options.kept_items) {
      floor = ring.front().commit.position.revision();
      ring.pop_front();
    }
  }
};

subscription::subscription(std::shared_ptr<state> shared) : state_(std::move(shared)) {}

subscription::~subscription() {
  const std::scoped_lock lock(state_->hub->mutex);
  state_->armed = false;
  state_->ended = absl::CancelledError("the watcher is gone");
}

journal::Position subscription::position() const {
  const std::scoped_lock lock(state_->hub->mutex);
  return position_at(state_->hub->current->position.journal_id(), state_->cursor);
}

// One piece of what is older than the ring; reads the disk, so the lock is let go meanwhile.
absl::Status subscription::take_history(std::unique_lock<std::mutex>& lock, std::size_t limit,
                                        std::vector<watch_item>& items) {
  const snapshot_hub::core& hub = *state_->hub;
  const std::uint64_t floor = hub.floor;
  if (!hub.options.history) {
    return make_fault(fault::POSITION_OUT_OF_RANGE,
                      fmt::format("position {} is no longer held; oldest: {}", state_->cursor, floor));
  }
  const journal::Position from = position_at(hub.current->position.journal_id(), state_->cursor);
  lock.unlock();
  const auto events = hub.options.history(from, floor, limit);
  if (events.ok()) add_history(*events, from.journal_id(), state_->filter, items);
  lock.lock();
  if (!events.ok()) return events.status();
  // Fewer than asked for: that was all up to the floor.
  state_->cursor = events->size() < limit ? floor : events->back()->position().revision();
  state_->from_history = true;
  return absl::OkStatus();
}

// What changed before the ring, as it is now; what changed again later comes out of the ring.
void subscription::take_changed(std::vector<watch_item>& items) {
  const state& mine = *state_;
  const snapshot& now = *mine.hub->current;
  const journal::Position resume = position_at(now.position.journal_id(), mine.start);
  add_changed(*now.nodes, mine.start, mine.cursor, resume, mine.filter, items);
  add_changed(*now.racks, mine.start, mine.cursor, resume, mine.filter, items);
  add_changed(*now.endpoints, mine.start, mine.cursor, resume, mine.filter, items);
  add_changed(*now.operations, mine.start, mine.cursor, resume, mine.filter, items);
  add_changed(*now.records, mine.start, mine.cursor, resume, mine.filter, items);
  add_changed(*now.valves, mine.start, mine.cursor, resume, mine.filter, items);
  add_changed(*now.pdus, mine.start, mine.cursor, resume, mine.filter, items);
  add_changed(*now.cdus, mine.start, mine.cursor, resume, mine.filter, items);
  state_->from_history = false;
}

// The next commits out of memory; filtered without the lock.
void subscription::take_held(std::unique_lock<std::mutex>& lock, std::size_t limit, std::vector<watch_item>& items) {
  state& mine = *state_;
  const snapshot_hub::core& hub = *mine.hub;
  std::vector<committed_batch> taken;
  std::size_t planned = items.size();
  for (auto next = hub.after(mine.cursor); next != hub.ring.end() && planned < limit; ++next) {
    taken.push_back(next->commit);
    planned += items_in(next->commit);
  }
  if (!taken.empty()) mine.cursor = taken.back().position.revision();
  mine.cursor_items = hub.items_at(mine.cursor);
  lock.unlock();
  for (const committed_batch& commit : taken) add_items(commit, mine.filter, items);
  lock.lock();
}

absl::StatusOr<std::vector<watch_item>> subscription::take(std::size_t limit) {
  state& mine = *state_;
  const snapshot_hub::core& hub = *mine.hub;
  limit = std::max<std::size_t>(limit, 1);
  std::vector<watch_item> items;
  std::unique_lock lock(hub.mutex);
  mine.armed = false;
  while (items.empty()) {
    if (!mine.ended.ok()) return mine.ended;
    if (hub.closed) return mine.ended = absl::UnavailableError("the daemon is stopping; watch again later");
    if (mine.cursor < hub.floor) {
      if (const absl::Status done = take_history(lock, limit, items); !done.ok()) return mine.ended = done;
      continue;
    }
    if (mine.from_history) {
      take_changed(items);
      continue;
    }
    if (mine.cursor >= hub.head()) break;
    take_held(lock, limit, items);
  }
  if (mine.cursor >= hub.head()) mine.live = true;
  if (!items.empty()) {
    mine.told = std::max(mine.told, items.back().position.revision());
  } else if (mine.cursor - mine.told >= mine.options.bookmark_every) {
    watch_item bookmark;
    bookmark.position = position_at(hub.current->position.journal_id(), mine.cursor);
    bookmark.revision = mine.cursor;
    items.push_back(std::move(bookmark));
    mine.told = mine.cursor;
  } else {
    mine.armed = true;
  }
  return items;
}

snapshot_hub::snapshot_hub(std::shared_ptr<const snapshot> initial, hub_options options)
    : core_(std::make_shared<core>()) {
  core_->floor = initial->position.revision();
  core_->current = std::move(initial);
  core_->options = std::move(options);
}

snapshot_hub::~snapshot_hub() { close(); }

std::shared_ptr<const snapshot> snapshot_hub::read() const {
  const std::scoped_lock lock(core_->mutex);
  return core_->current;
}

void snapshot_hub::publish(std::span<const committed_batch> commits) {
  if (commits.empty()) return;
  auto next = advance(*read(), commits);  // outside the lock: this thread is the only writer
  std::vector<std::shared_ptr<subscription::state>> woken;
  {
    const std::scoped_lock lock(core_->mutex);
    core_->current = std::move(next);
    for (const committed_batch& commit : commits) core_->hold(commit);
    std::erase_if(core_->watchers, [](const auto& watcher) { return watcher.expired(); });
    for (const auto& weak : core_->watchers) {
      auto watcher = weak.lock();
      if (watcher == nullptr || !watcher->ended.ok()) continue;
      const std::uint64_t lag = core_->total_items - watcher->cursor_items;
      if (watcher->live && lag > watcher->options.queue_limit && !watcher->armed) {
        watcher->ended = make_fault(fault::WATCH_OVERFLOW,
                                    fmt::format("{} items behind, {} allowed; go on from revision {}", lag,
                                                watcher->options.queue_limit, watcher->cursor));
        watcher->armed = true;
      }
      if (!watcher->armed) continue;
      watcher->armed = false;
      woken.push_back(std::move(watcher));
    }
  }
  for (const auto& watcher : woken) watcher->wake();
}

absl::StatusOr<std::unique_ptr<subscription>> snapshot_hub::subscribe(const journal::Position& from,
                                                                      watch_filter filter, watch_options options,
                                                                      std::function<void()> wake) {
  options.queue_limit = std::min(options.queue_limit, core_->options.kept_items);
  const std::scoped_lock lock(core_->mutex);
  if (core_->closed) return absl::UnavailableError("the daemon is stopping");
  const journal::Position& now = core_->current->position;
  const std::uint64_t start = from.journal_id().empty() ? now.revision() : from.revision();
  if (!from.journal_id().empty() && (from.journal_id() != now.journal_id() || start > now.revision())) {
    return make_fault(fault::POSITION_OUT_OF_RANGE,
                      fmt::format("position {}@{} is not of this journal, which is at {}@{}; list again",
                                  from.journal_id(), from.revision(), now.journal_id(), now.revision()));
  }
  if (start < core_->floor && !core_->options.history) {
    return make_fault(fault::POSITION_OUT_OF_RANGE, fmt::format("position {} is no longer held; oldest: {}@{}", start,
                                                                now.journal_id(), core_->floor));
  }
  std::shared_ptr<subscription::state> shared(
      new subscription::state{core_, std::move(filter), options, std::move(wake), start, start, start,
                              core_->items_at(start), false, start == now.revision(), false, absl::OkStatus()});
  core_->watchers.push_back(shared);
  return std::unique_ptr<subscription>(new subscription(std::move(shared)));
}

void snapshot_hub::close() {
  std::vector<std::shared_ptr<subscription::state>> woken;
  {
    const std::scoped_lock lock(core_->mutex);
    core_->closed = true;
    for (const auto& weak : core_->watchers) {
      auto watcher = weak.lock();
      if (watcher != nullptr && watcher->armed) {
        watcher->armed = false;
        woken.push_back(std::move(watcher));
      }
    }
  }
  for (const auto& watcher : woken) watcher->wake();
}

}  // namespace busbar::core
