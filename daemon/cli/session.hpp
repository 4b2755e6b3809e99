// One command's conversation with the daemons: whom to ask, gathering answers in parallel, telling errors to
// the person.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/cli/client.hpp"
#include "daemon/cli/context.hpp"
#include "daemon/cli/json_text.hpp"

namespace busbar::cli {

template <class Response>
struct answer {
  std::size_t from = 0;
  call_result result;
  Response value;
};

class session {
 public:
  // Says what is wrong and holds no endpoint where there is nobody to ask.
  session(const options& said, context& world);

  const client& wire() const { return *wire_; }
  const options& said() const { return said_; }
  context& world() { return world_; }
  // Done: there is somebody to ask. Else why not, already said: usage where TLS files cannot be read, unreachable where no
  // daemon has a socket.
  exit_code cannot_ask() const { return cannot_ask_; }

  // Indices of the daemons that can hold this AIP name: the instance of the rack's name where there is one,
  // else all.
  std::vector<std::size_t> holders_of(const std::string& name) const;
  std::vector<std::size_t> everyone() const;

  template <class Response>
  std::vector<answer<Response>> ask(const std::vector<std::size_t>& whom, const std::string& method,
                                    const google::protobuf::Message& request) const {
    std::vector<answer<Response>> answers(whom.size());
    std::vector<google::protobuf::Message*> values;
    for (auto& one : answers) values.push_back(&one.value);
    const std::vector<call_result> results = call_all(whom, method, request, values);
    for (std::size_t i = 0; i < whom.size(); ++i) {
      answers[i].from = whom[i];
      answers[i].result = results[i];
    }
    return answers;
  }

  // Names as typed, host lists expanded, in AIP form; says which is no name.
  std::optional<std::vector<std::string>> names() const;

  // Prints an error for people, each text once a command, and answers its exit code.
  exit_code tell(const call_result& result, const std::string& about);
  exit_code tell_unreachable(std::size_t endpoint, const call_result& result);
  void say(const std::string& text);
  // Held by whoever writes to stderr while the live view may be drawn there by another thread.
  std::unique_lock<std::mutex> hold_talk() { return std::unique_lock(talk_); }

  std::chrono::milliseconds call_deadline() const;
  std::chrono::steady_clock::time_point command_deadline() const { return deadline_; }

 private:
  std::unique_ptr<client> make_client();
  std::vector<call_result> call_all(const std::vector<std::size_t>& whom, const std::string& method,
                                    const google::protobuf::Message& request,
                                    const std::vector<google::protobuf::Message*>& responses) const;

  const options& said_;
  context& world_;
  exit_code cannot_ask_ = exit_code::done;  // before wire_, whose making sets it
  std::unique_ptr<client> wire_;
  std::mutex talk_;  // guards told_ and world_.err
  std::set<std::string> told_;
  std::chrono::steady_clock::time_point deadline_;
};

// What a listing could not show.
exit_code exit_code_of(const listing& all);
// Data in the format asked for; says nothing on stdout where there is nothing to say.
void print(session& with, kind of, const listing& all);

}  // namespace busbar::cli
