#include "actors/discovery/discovery_actor.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <filesystem>

namespace busbar::discovery {
namespace {

constexpr auto scan_interval = std::chrono::seconds(2);

struct discovery_state {
  static inline const char* name = "discovery";
  discovery_dependencies with;
  spec_ptr spec;
};

using self_pointer = discovery_actor::stateful_pointer<discovery_state>;

void scan(self_pointer self) {
  discovery_state& state = self->state;
  if (state.spec == nullptr) return;
  const discovery_actor me = self;
  state.with.run_blocking(
      [me, spec = state.spec, read = state.with.read_file, site_dir = state.with.site_dir]() {
        auto found = std::make_shared<std::vector<announcement>>();
        for (const std::string& file : spec->manifest().discovery().lease_files()) {
          const auto rows =
              parse_leases(read((std::filesystem::path(site_dir) / file).string()), "lease:" + file);
          found->insert(found->end(), rows.begin(), rows.end());
        }
        caf::anon_send(me, announcements_ptr(found));
      });
}

discovery_actor::behavior_type behavior(self_pointer self, discovery_dependencies dependencies) {
  self->state.with = std::move(dependencies);
  self->monitor(self->state.with.rack);
  self->set_down_handler(
      [self](const caf::down_msg&) { self->quit(); });  // no scanner without its rack, however the rack ended
  self->delayed_send(self, scan_interval, core::scan_atom_v);
  return {
      [self](const spec_ptr& spec) {
        self->state.spec = spec;
        scan(self);
      },
      [self](core::scan_atom) {
        scan(self);
        self->delayed_send(self, scan_interval, core::scan_atom_v);
      },
      [self](const announcements_ptr& found) {
        if (self->state.spec == nullptr) return;
        self->send(self->state.with.rack, rack::sightings_ptr(std::make_shared<const sightings>(
                                              match(self->state.spec->manifest(), *found))));
      },
  };
}

}  // namespace

discovery_actor spawn_discovery(caf::actor_system& system, discovery_dependencies dependencies) {
  return system.spawn(behavior, std::move(dependencies));
}

}  // namespace busbar::discovery
