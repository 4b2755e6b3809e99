// Telemetry of one device: its MetricReports from the event stream where it streams them, else read one by
// one, the fast ones each second and the others each ten; and slowly, sensor by sensor, what no report brings
// (or everything, where there are no reports). On the I/O thread, through the device's one session, one
// request at a time, behind whatever else is asked of the device. A device that fails is left alone for
// longer and longer, it alone.
//
// A stream that ends or falls silent is opened anew, and what it brought is read at once meanwhile. What has
// not come for a few of its own intervals is stale on the board.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/devices/redfish/driver.hpp"
#include "actors/devices/redfish/event_stream.hpp"
#include "actors/devices/redfish/telemetry_points.hpp"

namespace busbar::devices::redfish {

struct telemetry_pace {
  milliseconds tick{1'000};
  milliseconds fast{1'000};
  milliseconds slow{10'000};
  milliseconds sensors{300'000};           // between two readings of what no report brings
  milliseconds sensors_alone{10'000};      // where there are no reports, besides the time it takes
  milliseconds stream_chance{3'000};       // for a new stream to bring a report before it is read
  milliseconds stream_retry_first{1'000};  // doubled up to stream_retry_last
  milliseconds stream_retry_last{60'000};
  milliseconds stream_refused{300'000};  // where there is none
  milliseconds back_off_first{1'000};    // after a failed reading, doubled up to back_off_last
  milliseconds back_off_last{60'000};
};

class telemetry_reader : public std::enable_shared_from_this<telemetry_reader> {
 public:
  telemetry_reader(driver_ptr d, std::shared_ptr<scheduler> loop, telemetry_plan plan,
                   telemetry_pace pace = {});

  void start();
  void stop();
  const telemetry_figures& figures() const { return points_.figures(); }
  bool streams() const { return stream_open_; }

 private:
  struct places {
    std::string stream;                // URI of the event stream; empty: none
    std::vector<std::string> reports;  // URIs
  };

  void tick();
  void look_after_stream(const core::instant& now);
  void open_stream(const core::instant& now);
  void take_bytes(std::string_view bytes);
  void take_event(std::string_view data);
  void stream_ended(int http);
  void stream_lost(const core::instant& now);
  void work(const core::instant& now);
  std::string next_report(const core::instant& now);
  std::int64_t due_ns(const std::string& uri);
  void poll(const std::string& uri);
  void polled(const std::string& uri, const response& answer);
  void failed(const core::instant& now);
  void finish_work(bool good);
  void start_sensors(const core::instant& now);
  void start_work(task<bool> procedure);
  bool may_ask() const;
  void wait(milliseconds delay, void (telemetry_reader::*then)());
  friend task<bool> find_telemetry(std::shared_ptr<telemetry_reader> self);
  friend task<bool> read_all_sensors(std::shared_ptr<telemetry_reader> self);

  const driver_ptr driver_;
  const std::shared_ptr<scheduler> loop_;
  const telemetry_plan plan_;
  const telemetry_pace pace_;
  telemetry_points points_;
  metric_report report_;  // kept for its memory
  std::set<std::string> fast_;

  bool stopped_ = true;
  bool look_again_ = false;
  bool busy_ = false;  // a request of ours is under way
  std::optional<places> places_;
  std::int64_t resume_ns_ = 0;  // nothing is read before
  milliseconds back_off_{0};
  std::int64_t sensors_due_ns_ = 0;

  event_stream_decoder events_;
  bool stream_open_ = false;
  std::int64_t stream_opened_ns_ = 0;
  std::int64_t stream_heard_ns_ = 0;
  std::int64_t stream_gap_ns_ = 0;  // between bytes: the longest of late
  std::int64_t next_stream_ns_ = 0;
  milliseconds stream_retry_{0};
};

}  // namespace busbar::devices::redfish
