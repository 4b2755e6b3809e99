#include "daemon/busbard/rpc/event_pages.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace busbar::rpc {
namespace {

using event_list = std::vector<std::shared_ptr<const journal::Event>>;

// A journal of `revisions` revisions with two events each, about trays c01 (first) and c02 (second); oldest: the first position
// one can read from.
struct small_journal {
  std::uint64_t revisions = 10;
  std::uint64_t oldest = 0;

  absl::StatusOr<event_list> read(const journal::Position& from, std::uint64_t to, std::size_t limit) const {
    if (from.revision() < oldest) return absl::OutOfRangeError("oldest is " + std::to_string(oldest));
    event_list found;
    for (std::uint64_t at = from.revision() + 1; at <= to && found.size() < limit; ++at) {
      for (std::uint32_t index = 0; index < 2; ++index) {
        auto event = std::make_shared<journal::Event>();
        event->mutable_position()->set_revision(at);
        event->set_index_in_batch(index);
        event->set_object(index == 0 ? "r01/c01" : "r01/c02");
        event->set_type("t" + std::to_string(at));
        found.push_back(std::move(event));
      }
    }
    return found;
  }
  // All pages of a request, as "revision.index".
  std::vector<std::string> walk(v1::ListEventsRequest request) const {
    journal::Position head;
    head.set_revision(revisions);
    std::vector<std::string> seen;
    for (int page = 0; page < 100; ++page) {
      const auto found = event_page(request, "r01", head, [this](const auto& from, auto to, auto limit) {
        return read(from, to, limit);
      });
      EXPECT_TRUE(found.ok()) << found.status();
      if (!found.ok()) return seen;
      for (const auto& event : found->events()) {
        seen.push_back(std::to_string(event.position().revision()) + "." + std::to_string(event.index()));
      }
      if (found->next_page_token().empty()) return seen;
      request.set_page_token(found->next_page_token());
    }
    ADD_FAILURE() << "pages without end";
    return seen;
  }
};

TEST(event_pages, newest_first_without_a_position) {
  v1::ListEventsRequest request;
  const small_journal journal{3, 0};
  EXPECT_EQ(journal.walk(request), (std::vector<std::string>{"3.1", "3.0", "2.1", "2.0", "1.1", "1.0"}));
  for (const int size : {1, 2, 3, 5}) {
    request.set_page_size(size);
    EXPECT_EQ(journal.walk(request), (std::vector<std::string>{"3.1", "3.0", "2.1", "2.0", "1.1", "1.0"})) << size;
  }
}

TEST(event_pages, oldest_first_after_a_position) {
  v1::ListEventsRequest request;
  request.mutable_after()->set_revision(1);
  const small_journal journal{3, 0};
  for (const int size : {0, 1, 2, 3}) {
    request.set_page_size(size);
    EXPECT_EQ(journal.walk(request), (std::vector<std::string>{"2.0", "2.1", "3.0", "3.1"})) << size;
  }
}

TEST(event_pages, keep_to_an_object_and_a_filter) {
  v1::ListEventsRequest request;
  request.set_object("racks/r01/nodes/c02");
  request.set_page_size(1);
  EXPECT_EQ((small_journal{3, 0}.walk(request)), (std::vector<std::string>{"3.1", "2.1", "1.1"}));
  request.set_filter("type=t2");
  EXPECT_EQ((small_journal{3, 0}.walk(request)), (std::vector<std::string>{"2.1"}));
}

TEST(event_pages, end_where_the_journal_was_cut) {
  v1::ListEventsRequest request;
  EXPECT_EQ((small_journal{1000, 997}.walk(request)),
            (std::vector<std::string>{"1000.1", "1000.0", "999.1", "999.0", "998.1", "998.0"}));
}

TEST(event_pages, a_position_that_was_cut_is_out_of_range) {
  v1::ListEventsRequest request;
  request.mutable_after()->set_revision(1);
  journal::Position head;
  head.set_revision(1000);
  const small_journal journal{1000, 997};
  const auto page = event_page(request, "r01", head,
                               [&journal](const auto& from, auto to, auto limit) { return journal.read(from, to, limit); });
  EXPECT_EQ(page.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(std::string(page.status().message()).find("997"), std::string::npos);
}

}  // namespace
}  // namespace busbar::rpc
