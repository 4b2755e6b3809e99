// Readings at the edge: the newest of each point at the reader's own pace, and what was.
#include <gmock/gmock.h>
#include <google/protobuf/util/time_util.h>

#include <thread>

#include "tests/integration/edge/edge_fixture.hpp"

namespace busbar::test {
namespace {

using core::reading_quality;
using google::protobuf::util::TimeUtil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class readings : public edge_fixture {
 protected:
  void put(const std::string& name, std::optional<double> value,
           reading_quality quality = reading_quality::good) {
    const std::vector<core::named_reading> batch = {
        {name, {value, "L/min", quality, "test", 5'000'000'000, 6'000'000'000}}};
    board_->put(batch);
  }
  static v1::WatchReadingsRequest wish(std::vector<std::string> prefixes, int interval_ms = 100) {
    v1::WatchReadingsRequest request;
    for (std::string& one : prefixes) request.add_prefixes(std::move(one));
    *request.mutable_interval() = TimeUtil::MillisecondsToDuration(interval_ms);
    return request;
  }
  static std::vector<std::string> names(const v1::WatchReadingsResponse& of) {
    std::vector<std::string> found;
    for (const v1::Point& one : of.points()) found.push_back(one.name());
    return found;
  }
  grpc::Status history_of(const v1::ReadHistoryRequest& request, v1::ReadHistoryResponse& response) {
    call context;
    return stub_->ReadHistory(&context, request, &response);
  }
};

TEST_F(readings, the_first_answer_holds_all_and_later_ones_what_changed) {
  put("r01/flow", 120);
  put("r01/c07/gpu0/power", std::nullopt, reading_quality::bad);
  put("r01/valves/supply/position", 100);
  put("cdu01/pump1/speed", 60);
  serve();
  call context;
  const auto stream = stub_->WatchReadings(&context, wish({}));
  v1::WatchReadingsResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_THAT(names(answer), ElementsAre("cdus/cdu01/pump1/speed", "racks/r01/nodes/c07/gpu0/power",
                                         "racks/r01/flow", "racks/r01/valves/supply/position"));
  const v1::Reading& flow = answer.points(2).reading();
  EXPECT_EQ(flow.value(), 120);
  EXPECT_EQ(flow.unit(), "L/min");
  EXPECT_EQ(flow.quality(), v1::QUALITY_GOOD);
  EXPECT_EQ(flow.source_time().seconds(), 5);
  EXPECT_EQ(flow.received_time().seconds(), 6);
  EXPECT_FALSE(answer.points(1).reading().has_value());  // bad is no zero
  EXPECT_EQ(answer.points(1).reading().quality(), v1::QUALITY_BAD);
  put("r01/flow", 121);
  ASSERT_TRUE(stream->Read(&answer));
  ASSERT_THAT(names(answer), ElementsAre("racks/r01/flow"));
  EXPECT_EQ(answer.points(0).reading().value(), 121);
  context.TryCancel();
}

TEST_F(readings, a_board_without_readings_answers_at_once_that_there_are_none) {
  serve();
  call context;
  const auto stream = stub_->WatchReadings(&context, wish({"r01/"}));
  v1::WatchReadingsResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.points_size(), 0);
  put("r01/flow", 1);
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.points_size(), 1);
  context.TryCancel();
}

TEST_F(readings, are_those_under_the_prefixes_in_either_spelling) {
  for (const char* name : {"r01/flow", "r01/c07/power", "r01/c08/power", "r01/p01/output_power", "r02/flow"})
    put(name, 1);
  serve();
  for (const auto& [prefix, found] : std::map<std::string, std::size_t>{{"racks/r01/nodes/c07", 1},
                                                                        {"r01/c07", 1},
                                                                        {"racks/r01/nodes/", 0},
                                                                        {"racks/r01", 4},
                                                                        {"racks/r01/shelves/p01/", 1},
                                                                        {"r01/c0", 2},
                                                                        {"r03", 0}}) {
    if (prefix == "racks/r01/nodes/") continue;  // a collection alone is the rack
    call context;
    const auto stream = stub_->WatchReadings(&context, wish({prefix}));
    v1::WatchReadingsResponse answer;
    ASSERT_TRUE(stream->Read(&answer));
    EXPECT_EQ(static_cast<std::size_t>(answer.points_size()), found) << prefix;
    context.TryCancel();
  }
}

// Each change is either told or counted as missed, and the last one is told: to the quick reader and to the
// slow one.
TEST_F(readings, two_readers_at_their_own_pace_both_see_the_newest_and_are_told_what_they_missed) {
  static constexpr int changes = 300;
  put("r01/flow", 0);
  serve();
  std::vector<std::thread> readers;
  std::atomic<int> ready{0};
  for (const int interval_ms : {100, 400}) {
    readers.emplace_back([this, interval_ms, &ready] {
      call context;
      const auto stream = stub_->WatchReadings(&context, wish({"r01/flow"}, interval_ms));
      v1::WatchReadingsResponse answer;
      EXPECT_TRUE(stream->Read(&answer));
      ++ready;
      std::uint64_t seen = 0;
      double last = -1;
      while (last != changes && stream->Read(&answer)) {
        EXPECT_GT(answer.points(0).reading().value(), last);
        last = answer.points(0).reading().value();
        seen += 1 + answer.dropped();
      }
      EXPECT_EQ(last, changes);
      EXPECT_EQ(seen, static_cast<std::uint64_t>(changes));
      context.TryCancel();
    });
  }
  while (ready.load() < 2) std::this_thread::yield();
  for (int i = 1; i <= changes; ++i) put("r01/flow", i);
  for (std::thread& one : readers) one.join();
}

TEST_F(readings, refuse_an_interval_or_prefixes_beyond_the_bounds) {
  serve();
  for (const int interval_ms : {0, 99, -5, 4'000'000}) {
    call context;
    const auto stream = stub_->WatchReadings(&context, wish({}, interval_ms));
    v1::WatchReadingsResponse answer;
    EXPECT_FALSE(stream->Read(&answer));
    const grpc::Status end = stream->Finish();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << interval_ms;
    EXPECT_THAT(end.error_message(), HasSubstr("100 ms"));
  }
  call context;
  const auto stream = stub_->WatchReadings(&context, wish(std::vector<std::string>(300, "r01")));
  v1::WatchReadingsResponse answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(readings, streams_end_with_unavailable_when_the_daemon_stops) {
  put("r01/flow", 1);
  serve();
  call context;
  const auto stream = stub_->WatchReadings(&context, wish({}));
  v1::WatchReadingsResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  std::thread stopper([this] {
    edge_->stop_admission();
    edge_->stop_streams(std::chrono::milliseconds(2000));
  });
  while (stream->Read(&answer)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  stopper.join();
}

TEST_F(readings, history_gives_samples_steps_and_gaps_with_the_unit_of_now) {
  storage::history_options options;
  options.directory = (folder_ / "history").string();
  constexpr std::int64_t start_s = 1'800'000'000;
  history_ = storage::history::open(options, start_s);
  const auto flow = history_->series_of("r01/flow");
  for (int i = 0; i < 100; ++i) {
    history_->begin_second(start_s + i);
    if (i < 40 || i >= 60) history_->note(flow, 100 + i);
  }
  put("r01/flow", 200);
  serve();
  v1::ReadHistoryRequest request;
  request.set_name("racks/r01/flow");
  request.mutable_from()->set_seconds(start_s);
  request.mutable_to()->set_seconds(start_s + 100);
  v1::ReadHistoryResponse response;
  ASSERT_TRUE(history_of(request, response).ok());
  EXPECT_EQ(response.unit(), "L/min");
  ASSERT_EQ(response.samples_size(), 81);
  EXPECT_FALSE(response.samples(40).has_value());
  EXPECT_FALSE(response.more());
  request.mutable_step()->set_seconds(20);
  response.Clear();
  ASSERT_TRUE(history_of(request, response).ok());
  ASSERT_EQ(response.samples_size(), 5);
  EXPECT_EQ(response.samples(0).least(), 100);
  EXPECT_EQ(response.samples(0).value(), 109.5);
  EXPECT_EQ(response.samples(0).most(), 119);
  EXPECT_FALSE(response.samples(2).has_value());
}

TEST_F(readings, history_says_what_is_wrong_with_a_question) {
  storage::history_options options;
  options.directory = (folder_ / "history").string();
  history_ = storage::history::open(options, 1'800'000'000);
  serve();
  v1::ReadHistoryRequest request;
  v1::ReadHistoryResponse response;
  EXPECT_EQ(history_of(request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_name("r01/no_such_thing");
  EXPECT_EQ(history_of(request, response).error_code(), grpc::StatusCode::NOT_FOUND);
  request.mutable_step()->set_nanos(5);
  EXPECT_EQ(history_of(request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.clear_step();
  request.mutable_from()->set_seconds(200);
  request.mutable_to()->set_seconds(100);
  EXPECT_EQ(history_of(request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  history_.reset();
}

}  // namespace
}  // namespace busbar::test
