// The public form of each object, made once a change and kept with its bytes, so that Get and List copy references and not
// state. Thread-safe; the locks are shared by gRPC's threads alone.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/core/reading_board.hpp"
#include "actors/core/snapshot_hub.hpp"
#include "daemon/busbard/rpc/convert.hpp"
#include "daemon/busbard/rpc/names.hpp"

namespace busbar::rpc {

template <class Message>
struct view {
  std::shared_ptr<const Message> message;
  grpc::Slice body;     // the message's bytes
  grpc::Slice element;  // the same as an element of field 1, which is where every list response has its objects
};

template <class Message>
using view_ptr = std::shared_ptr<const view<Message>>;

template <class Message>
view_ptr<Message> make_view(Message message) {
  auto made = std::make_shared<view<Message>>();
  const std::string bytes = message.SerializeAsString();
  std::string framed;
  {
    constexpr std::uint32_t first_field = (1u << 3) | 2u;  // field 1, length-delimited
    std::uint8_t header[10];
    std::uint8_t* end = google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(first_field, header);
    end = google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(static_cast<std::uint32_t>(bytes.size()), end);
    framed.assign(reinterpret_cast<const char*>(header), static_cast<std::size_t>(end - header));
  }
  framed += bytes;
  made->body = grpc::Slice(bytes);
  made->element = grpc::Slice(framed);
  made->message = std::make_shared<const Message>(std::move(message));
  return made;
}

// Keeps the newest view of each name. An entry is good while the objects it was made from are the very same; it holds them, so
// no address is ever used twice.
template <class Message>
class view_cache {
 public:
  template <class Make>
  view_ptr<Message> get(const std::string& name, const std::shared_ptr<const void>& source,
                        const std::shared_ptr<const void>& context, const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = entries_.find(name);
      if (found != entries_.end() && found->second.source == source && found->second.context == context) {
        return found->second.made;
      }
    }
    view_ptr<Message> made = make_view<Message>(make());
    const std::lock_guard lock(mutex_);
    entries_.insert_or_assign(name, cached{source, context, made});
    return made;
  }
  // Forgets all when there are many more than live objects: what was erased must not be kept for ever.
  void trim(std::size_t live) {
    const std::lock_guard lock(mutex_);
    if (entries_.size() > 2 * live + 64) entries_.clear();
  }

 private:
  struct cached {
    std::shared_ptr<const void> source;
    std::shared_ptr<const void> context;  // what else it was made from; may be null
    view_ptr<Message> made;
  };
  std::mutex mutex_;
  std::unordered_map<std::string, cached> entries_;
};

// Condition of what is shown while the store takes no writes.
inline constexpr std::string_view may_be_old_condition = "MAY_BE_OLD";

struct controller {};  // asks for rack controllers, which are shown in the form of shelves

// Message and List of each kind, how to find one by its short name, and how to walk all in the order of a list.
class views {
 public:
  // may_be_old: why what is shown may be old, empty while it is not; asked with each view, on any thread. Racks
  // and members are then shown with unknown health and that reason.
  // board: the latest readings; may be null.
  explicit views(std::string instance, std::function<std::string()> may_be_old = nullptr,
                 std::shared_ptr<const core::reading_board> board = nullptr)
      : instance_(std::move(instance)), may_be_old_(std::move(may_be_old)), board_(std::move(board)) {}

  // Null: there is none.
  view_ptr<v1::Node> find(const core::snapshot& state, const std::string& name, const v1::Node*);
  view_ptr<v1::Shelf> find(const core::snapshot& state, const std::string& name, const v1::Shelf*);
  view_ptr<v1::Shelf> find(const core::snapshot& state, const std::string& name, const controller*);
  view_ptr<v1::Rack> find(const core::snapshot& state, const std::string& name, const v1::Rack*);
  view_ptr<v1::Valve> find(const core::snapshot& state, const std::string& name, const v1::Valve*);
  view_ptr<v1::Pdu> find(const core::snapshot& state, const std::string& name, const v1::Pdu*);
  view_ptr<v1::Cdu> find(const core::snapshot& state, const std::string& name, const v1::Cdu*);
  view_ptr<v1::Endpoint> find(const core::snapshot& state, const std::string& name, const v1::Endpoint*);
  view_ptr<v1::Operation> find(const core::snapshot& state, const std::string& name, const v1::Operation*);

  // scope: short form of a parent, empty for all.
  std::vector<view_ptr<v1::Node>> all(const core::snapshot& state, const std::string& scope, const v1::Node*);
  std::vector<view_ptr<v1::Shelf>> all(const core::snapshot& state, const std::string& scope, const v1::Shelf*);
  std::vector<view_ptr<v1::Shelf>> all(const core::snapshot& state, const std::string& scope, const controller*);
  std::vector<view_ptr<v1::LeakDetector>> all(const core::snapshot& state, const std::string& scope, const v1::LeakDetector*);
  std::vector<view_ptr<v1::Rack>> all(const core::snapshot& state, const std::string& scope, const v1::Rack*);
  std::vector<view_ptr<v1::Valve>> all(const core::snapshot& state, const std::string& scope, const v1::Valve*);
  std::vector<view_ptr<v1::Pdu>> all(const core::snapshot& state, const std::string& scope, const v1::Pdu*);
  std::vector<view_ptr<v1::Cdu>> all(const core::snapshot& state, const std::string& scope, const v1::Cdu*);
  std::vector<view_ptr<v1::Endpoint>> all(const core::snapshot& state, const std::string& scope, const v1::Endpoint*);
  std::vector<view_ptr<v1::Operation>> all(const core::snapshot& state, const std::string& scope, const v1::Operation*);

  const std::string& instance() const { return instance_; }
  const core::reading_board* board() const { return board_.get(); }
  std::string why_old() const { return may_be_old_ ? may_be_old_() : std::string(); }

 private:
  view_ptr<v1::Node> node(const std::string& name, const core::versioned<journal::Node>& held);
  view_ptr<v1::Shelf> shelf(const std::string& name, const core::versioned<journal::Node>& held);
  view_ptr<v1::Rack> rack(const core::snapshot& state, const std::string& name, const core::versioned<journal::Rack>& held);
  view_ptr<v1::Endpoint> endpoint(const std::string& name, const core::versioned<journal::Endpoint>& held);
  view_ptr<v1::Operation> operation(const std::string& name, const core::versioned<journal::Operation>& held);

  const std::string instance_;
  const std::function<std::string()> may_be_old_;
  const std::shared_ptr<const core::reading_board> board_;
  view_cache<v1::Node> nodes_;
  view_cache<v1::Shelf> shelves_;
  view_cache<v1::Rack> racks_;
  view_cache<v1::Endpoint> endpoints_;
  view_cache<v1::Operation> operations_;
};

}  // namespace busbar::rpc
