#include "daemon/busbard/rpc/edge_service.hpp"

#include <utility>

namespace busbar::rpc {
namespace {

constexpr std::size_t reader_queue = 64;

}  // namespace

edge_service::edge_service(edge_dependencies deps, const guard& gate, watch_limits limits)
    : deps_(std::move(deps)),
      gate_(gate),
      shown_(deps_.instance, deps_.may_be_old, deps_.board),
      watches_(deps_.hub, shown_, limits),
      readings_(deps_.board),
      waits_(deps_.hub, shown_),
      reader_(reader_queue) {}

void edge_service::end_streams() {
  watches_.end_all();
  readings_.end_all();
  waits_.end_all();
}

void edge_service::end_acts() {
  acts_.fail_all(absl::UnavailableError("the daemon is stopping; ask again with the same request id"));
}

}  // namespace busbar::rpc
