// The conversation with one device, without I/O: which request comes next, and what an answer means. One
// request at a time and one session; reads only, besides its own session. There is no request here that
// changes a device's power.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "daemon/interlock/detector_decode.hpp"

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
    poll_done,      // readings() holds every needed detector, unknown where it could not be read
    session_lost,   // log in again
    login_refused,  // 401: wait long, the device locks accounts out
    failed,         // trouble() says why; wait, then next() tries again
  };

  // stale_session: URI of the session an earlier process left at the device; deleted first after login.
  device_walk(ArmedDevice device, std::string stale_session);

  http_request next() const;
  news on(const http_response& response);
  // The transport failed: an open poll is given up and begins anew, the session is kept.
  void on_transport_failure();

  bool logged_in() const { return !token_.empty(); }
  const std::string& session_uri() const { return session_uri_; }
  const std::map<std::string, reading>& readings() const { return readings_; }
  const std::string& trouble() const { return trouble_; }

 private:
  enum class stage {
    root,
    login,
    drop_stale,
    chassis_list,
    chassis,
    subsystem,
    detection,
    detector_list,
    sensor_list,
    poll
  };

  // A detector found. Its analog value is read at every fourth poll, and at once when the detector does not
  // say OK; between, the last value counts (a detector that says OK while its own value is wet is found
  // within four polls).
  struct found_detector {
    std::string uri;
    std::string raw_uri;
    raw_leak raw = raw_leak::not_offered;
    std::string body;  // of this poll, until the analog value is there
  };

  news after_root(const http_response& response);
  news after_login(const http_response& response);
  news after_chassis_list(const http_response& response);
  news after_search_step(const http_response& response);
  news after_reading(const http_response& response);
  news next_chassis();
  news fail(std::string why);
  news lose_session();
  void match_detectors(const std::string& body);
  void match_sensors(const std::string& body);
  void judge(const std::string& name, found_detector& detector);
  bool all_found() const;
  void start_poll();
  void finish_poll();

  struct step_of_poll {
    std::string name;
    bool raw = false;
  };

  ArmedDevice device_;
  stage stage_ = stage::root;
  std::string sessions_uri_;
  std::string chassis_uri_;
  std::string session_uri_;
  std::string stale_session_;
  std::string token_;
  std::string at_;           // URI of the search step under way
  std::string sensors_uri_;  // of the chassis under search
  std::deque<std::string> chassis_left_;
  std::map<std::string, found_detector> found_;  // by short name
  std::deque<step_of_poll> plan_;                // what is left of this poll
  std::uint64_t polls_ = 0;
  std::uint64_t polls_since_search_ = 0;
  bool search_again_ = false;
  std::map<std::string, reading> readings_;
  std::string trouble_;
};

}  // namespace busbar::interlock
