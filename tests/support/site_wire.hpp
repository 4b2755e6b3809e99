// The simulated devices on a virtual clock, without sockets: each takes one request at a time, each request
// its seeded time. `site_wire` is the cable and the devices; it outlives a daemon. `site_transport` is one
// daemon's end of it: the real Redfish driver runs over it. Cutting the transport is the daemon's crash:
// nothing calls back any more, and what a device has not begun may or may not still reach it. Knows no CAF.
// One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/devices/redfish/http_transport.hpp"
#include "daemon/sim/site.hpp"
#include "tests/support/virtual_scheduler.hpp"

namespace busbar::test_support {

class site_wire {
 public:
  using number_below = std::function<std::uint64_t(std::uint64_t)>;
  // status 0: the BMC did not answer.
  using answer = std::function<void(sim::http_reply)>;
  // Told of every request as it leaves the client, and of every answer as it leaves the device.
  using sent_listener = std::function<void(const std::string& address, const sim::http_request&)>;
  using listener =
      std::function<void(const std::string& address, const sim::http_request&, const sim::http_reply&)>;

  site_wire(virtual_scheduler& clock, sim::site& site, number_below choose)
      : clock_(clock), site_(site), choose_(std::move(choose)) {}

  sim::instant now() const {
    return std::chrono::duration_cast<sim::instant>(clock_.now().time_since_epoch());
  }
  void listen(sent_listener sent, listener told) {
    sent_ = std::move(sent);
    told_ = std::move(told);
  }

  // The id is good for forget().
  std::uint64_t request(const std::string& address, sim::http_request what, answer reply);
  // Nobody waits for it any more; the device may still do it.
  void forget(std::uint64_t id);
  // A crash at the client's end: nobody waits for anything, and each request that no device has begun is lost
  // or not, by seed.
  void forget_all();
  // After the clock's queue was cleared: the devices go on with what they hold.
  void resume();

  // What becomes of the next request at this device that changes something and whose path holds `part`.
  enum class mishap {
    answer_lost,   // it is carried out, and nobody hears of it
    request_lost,  // it never arrives
    pretended,     // it is answered 204 and nothing is done
  };
  void spoil_next_act(const std::string& address, mishap what, const std::string& part = {}) {
    mishaps_.push_back({address, part, what});
  }

  // The BMC answers nothing, as while it restarts; what it was told before stays told.
  void go_dark(const std::string& address) { dark_.insert(address); }
  void come_back(const std::string& address) { dark_.erase(address); }

  std::size_t waiting(const std::string& address) const;
  std::uint64_t served() const { return served_; }
  std::string certificate_of(const std::string& address);

 private:
  struct entry {
    std::uint64_t id;
    sim::http_request what;
    answer reply;
    std::optional<mishap> spoilt;
  };
  struct line {
    std::deque<entry> queue;
    bool busy = false;
  };
  void serve(const std::string& address);
  void finish(const std::string& address);
  struct planned {
    std::string address, part;
    mishap what;
  };
  std::optional<mishap> mishap_of(const std::string& address, const sim::http_request& what);

  virtual_scheduler& clock_;
  sim::site& site_;
  number_below choose_;
  sent_listener sent_;
  listener told_;
  std::map<std::string, line> lines_;
  std::vector<planned> mishaps_;
  std::set<std::string> dark_;
  std::uint64_t next_id_ = 1;
  std::uint64_t served_ = 0;
};

class site_transport final : public devices::redfish::http_transport,
                             public devices::redfish::scheduler,
                             public std::enable_shared_from_this<site_transport> {
 public:
  site_transport(virtual_scheduler& clock, site_wire& wire) : clock_(clock), wire_(wire) {}

  void send(const std::string& address, devices::redfish::http_request request,
            devices::redfish::http_callback callback) override;
  void post(std::function<void()> work) override;
  void after(std::chrono::milliseconds delay, std::function<void()> work) override;

  void cut() {
    cut_ = true;
    posted_.clear();
    open_.clear();
  }
  // The most requests that were open at one device at a time.
  std::size_t peak() const { return peak_; }

 private:
  struct exchange {
    std::string address;
    std::uint64_t on_wire = 0, timer = 0;
    devices::redfish::http_callback callback;
  };
  void end(std::uint64_t id, devices::redfish::http_outcome outcome);

  virtual_scheduler& clock_;
  site_wire& wire_;
  bool cut_ = false;
  std::deque<std::function<void()>>
      posted_;  // run in order, whichever of the clock's callbacks is picked first
  std::map<std::uint64_t, exchange> open_;
  std::map<std::string, std::size_t> open_at_;
  std::size_t peak_ = 0;
  std::uint64_t next_id_ = 1;
};

}  // namespace busbar::test_support
