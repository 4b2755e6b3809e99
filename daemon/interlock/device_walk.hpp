// The conversation with one device, without I/O: which request comes next, and what an answer means. One
// session; a search once, then one poll after another. What changes a device is one request only, that of
// trip_request(): ForceOff of a tray or a shelf, Closed of a valve.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/interlock/detector_decode.hpp"
#include "daemon/interlock/device_bodies.hpp"

namespace busbar::interlock {

struct http_request {
  std::string method;  // GET, POST, DELETE
  std::string path;
  std::string body;
  std::string token;  // empty: without login
};

struct http_response {
  int status = 0;
  std::string body;
  std::string token;  // X-Auth-Token
  std::string location;
};

class device_walk {
 public:
  enum class news {
    none,  // go on with the next request at once
    logged_in,
    detectors_done,  // readings() is whole, other values of the poll follow; go on at once
    poll_done,       // readings() holds every needed detector, unknown where it could not be read
    session_lost,    // log in again
    login_refused,   // 401: wait long, the device locks accounts out
    failed,          // trouble() says why; wait, then next() tries again
  };

  // stale_session: URI of the session an earlier process left at the device; deleted first after login.
  device_walk(ArmedDevice device, std::string stale_session);

  http_request next() const;
  news on(const http_response& response);
  // The transport failed: an open poll is given up and begins anew, the session is kept.
  void on_transport_failure();
  // Another lane was told that the session has ended.
  void drop_session() { lose_session(); }

  bool logged_in() const { return !token_.empty(); }
  // The request of next() is one of a poll, not of a login or a search.
  bool polling() const { return stage_ == stage::poll; }
  const std::string& session_uri() const { return session_uri_; }
  const std::map<std::string, reading>& readings() const { return readings_; }
  const std::string& trouble() const { return trouble_; }

  // Of the last poll. A tray's power is no part of a poll.
  power_seen power() const { return power_; }
  const std::map<std::string, std::optional<double>>& valve_positions() const { return positions_; }
  const std::optional<coolant_read>& coolant() const { return coolant_; }

  // The command of a trip; nothing while the device is not known well enough, or does not offer it.
  std::optional<http_request> trip_request(const std::string& valve) const;
  // Reads back what trip_request() changes.
  std::optional<http_request> read_back_request(const std::string& valve) const;
  std::optional<http_request> warm_request() const;    // keeps a lane's connection open
  std::optional<http_request> stream_request() const;  // of the event stream, where one is offered
  // What is read beside the polls, so that no reading of detectors waits for it: the coolant at a device that
  // has detectors too. Nothing: there is none, or it was not found.
  enum class aside { connector, reservoir };
  std::optional<http_request> aside_request(aside what) const;
  void take_aside(aside what, const http_response& response);
  // Every poll reads the analog values, not every fourth: for polls that are rare.
  void read_raw_always(bool on) { raw_always_ = on; }
  // What of a trip the device was found not to offer; empty before the search and when nothing is missing.
  const std::string& cannot() const { return cannot_; }

 private:
  // What an address is looked at for. A search is a list of visits; each answer may put further ones in
  // front.
  enum class place {
    chassis_list,
    chassis,
    subsystem,
    detection,
    detector_list,
    sensor_list,
    system_list,
    system,
    action_info,
    connector_list,
    connector,
    thermal,
    unit_list,
    unit,
    reservoir_list,
    event_service
  };
  struct visit {
    place what{};
    std::string uri;
  };
  enum class stage { root, login, drop_stale, search, poll };

  // A detector found. Its analog value is read at every fourth poll (at every one where polls are rare), and
  // at once when the detector does not say OK; between, the last value counts: a detector that says OK while
  // its own value is wet is found within four polls.
  struct found_detector {
    std::string uri;
    std::string list_uri;
    std::string raw_uri;
    std::string raw_list;  // not empty: the values of this list are read together
    raw_leak raw = raw_leak::not_offered;
    std::string body;  // of this poll, until the analog value is there
  };
  struct found_valve {
    std::string uri;
    std::string target;
  };
  enum class reading_of { group, raw_group, detector, raw, power, valve, connector, reservoir };
  struct step_of_poll {
    reading_of what{};
    std::string name;  // of a detector or valve; of a group: its list
  };

  news after_root(const http_response& response);
  news after_login(const http_response& response);
  news after_visit(const http_response& response);
  void look_at(const visit& at, const std::string& body);
  void look_at_chassis(const visit& at, const std::string& body);
  void look_at_connector(const visit& at, const std::string& body);
  void go_on(place what, const std::optional<std::string>& uri);
  void go_on_all(place what, const std::string& body);
  void start_search();
  news end_search();
  news fail(std::string why);
  news lose_session();
  void match_detectors(const visit& at, const std::string& body);
  void match_sensors(const visit& at, const std::string& body);
  void take_reset(const std::string& uri, const std::string& body, const char* action);
  std::string what_is_missing() const;
  void start_poll();
  void plan_detectors();
  news after_reading(const http_response& response);
  void take_group(const std::string& list, const std::string& body);
  void take_detector(const std::string& name, found_detector& detector, const std::string& body);
  void take_raw(const std::string& name, found_detector& detector, const http_response& response);
  void take_raw_group(const std::string& list, const http_response& response);
  void note_raw(found_detector& detector, raw_leak raw);
  bool reads_raw() const;
  bool has_aside() const { return device_.kind() == "cdu" && !device_.detectors().empty(); }
  void take_other(const step_of_poll& done, const http_response& response);
  void judge(const std::string& name, found_detector& detector);
  void finish_poll();
  bool all_found() const;
  bool is_tray_walk() const { return is_tray(device_); }

  ArmedDevice device_;
  stage stage_ = stage::root;
  service_root root_;
  std::string session_uri_;
  std::string stale_session_;
  std::string token_;
  std::deque<visit> visits_;
  std::map<std::string, found_detector> found_;  // by short name
  std::map<std::string, found_valve> valves_;    // by name
  reset_place reset_;
  bool reset_taken_ = false;   // by the search under way
  std::string connector_uri_;  // of a CDU
  std::string reservoir_uri_;
  std::string stream_uri_;
  bool expands_ = false;      // a collection gives its members' bodies in one answer
  bool raw_expands_ = false;  // and so does that of the sensors
  bool raw_always_ = false;
  // An answer that is byte by byte the last one, of which every detector was dry, is not judged again while
  // no analog value has changed.
  std::map<std::string, std::string> dry_bodies_;  // by list
  std::map<std::string, reading> dry_readings_;
  bool plan_with_raw_ = false;     // this poll reads the analog values
  std::deque<step_of_poll> plan_;  // what is left of this poll
  std::uint64_t polls_ = 0;
  std::uint64_t polls_since_search_ = 0;
  bool search_again_ = false;
  std::map<std::string, reading> readings_;
  power_seen power_ = power_seen::unknown;
  std::map<std::string, std::optional<double>> positions_;
  std::optional<coolant_read> coolant_;
  std::string cannot_;
  std::string trouble_;
};

}  // namespace busbar::interlock
