#include "daemon/cli/client.hpp"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <cstdlib>
#include <future>

#include "busbar/v1/busbar.grpc.pb.h"
#include "foreign/google/rpc/status.pb.h"

namespace busbar::cli {
namespace {

using google::protobuf::Message;

std::shared_ptr<grpc::ChannelCredentials> credentials_for(const std::string& target, const tls_texts& tls) {
  if (target.starts_with("unix:")) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = tls.ca;
  options.pem_cert_chain = tls.cert;
  options.pem_private_key = tls.key;
  return grpc::SslCredentials(options);
}

call_result result_of(const grpc::Status& status) {
  call_result result;
  result.code = static_cast<int>(status.error_code());
  result.message = status.error_message();
  google::rpc::Status details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details())) {
    for (const auto& detail : details.details()) {
      if (detail.Is<v1::ErrorInfo>()) detail.UnpackTo(&result.info);
      if (detail.Is<v1::SpecErrors>()) detail.UnpackTo(&result.spec_errors);
    }
  }
  return result;
}

void arm(grpc::ClientContext& context, std::chrono::milliseconds deadline) {
  context.set_deadline(std::chrono::system_clock::now() + deadline);
}

// A wrong method or type is a defect of this program, found by the first test that makes the call.
void check_types(const std::string& method, const Message& request, const Message& response) {
  const auto* service = v1::GetStatusRequest::descriptor()->file()->FindServiceByName("Busbar");
  const auto* found = service->FindMethodByName(method);
  if (found != nullptr && found->input_type() == request.GetDescriptor() &&
      found->output_type() == response.GetDescriptor()) {
    return;
  }
  fmt::print(stderr, "busbar: no such call: {}({})\n", method, request.GetTypeName());
  std::abort();
}

}  // namespace

struct client::wire {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Busbar::Stub> stub;
  grpc::TemplatedGenericStub<Message, Message> generic;

  explicit wire(std::shared_ptr<grpc::Channel> made)
      : channel(std::move(made)), stub(v1::Busbar::NewStub(channel)), generic(channel) {}
};

bool call_result::unanswered() const {
  return info.fault().empty() &&
         (code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::DEADLINE_EXCEEDED);
}

std::vector<endpoint> find_endpoints(const std::filesystem::path& run_dir) {
  std::vector<endpoint> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(run_dir, error)) {
    const std::filesystem::path socket = entry.path() / "busbard.sock";
    if (!std::filesystem::exists(socket, error)) continue;
    found.push_back({entry.path().filename().string(), "unix:" + std::filesystem::absolute(socket).string()});
  }
  std::sort(found.begin(), found.end(),
            [](const endpoint& a, const endpoint& b) { return a.instance < b.instance; });
  return found;
}

endpoint parse_endpoint(const std::string& text) {
  const bool is_unix = text.starts_with("unix:");
  if (!is_unix && text.find('/') == std::string::npos) return {text, text};
  const std::filesystem::path path = std::filesystem::absolute(is_unix ? text.substr(5) : text);
  return {path.parent_path().filename().string(), "unix:" + path.string()};
}

client::client(std::vector<endpoint> endpoints, const tls_texts& tls) : endpoints_(std::move(endpoints)) {
  for (const endpoint& known : endpoints_) {
    grpc::ChannelArguments arguments;
    // Whoever listens on a local socket need not be called by its path.
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "busbar");
    arguments.SetMaxReceiveMessageSize(64 << 20);
    if (!known.target.starts_with("unix:")) arguments = grpc::ChannelArguments();
    wires_.push_back(std::make_unique<wire>(
        grpc::CreateCustomChannel(known.target, credentials_for(known.target, tls), arguments)));
  }
}

client::~client() = default;

call_result client::call(std::size_t endpoint, const std::string& method, const Message& request,
                         Message& response, std::chrono::milliseconds deadline) const {
  check_types(method, request, response);
  grpc::ClientContext context;
  arm(context, deadline);
  // Shared: the callback may still be inside set_value when get() has returned.
  const auto done = std::make_shared<std::promise<grpc::Status>>();
  wires_[endpoint]->generic.UnaryCall(&context, "/busbar.v1.Busbar/" + method, {}, &request, &response,
                                      [done](grpc::Status status) { done->set_value(std::move(status)); });
  return result_of(done->get_future().get());  // the context outlives the call: get() waits for its end
}

call_result client::watch(std::size_t endpoint, const v1::WatchRequest& request,
                          std::chrono::milliseconds deadline, const std::stop_token& stop,
                          const std::function<void(const v1::WatchResponse&)>& each) const {
  grpc::ClientContext context;
  arm(context, deadline);
  const auto reader = wires_[endpoint]->stub->Watch(&context, request);
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  v1::WatchResponse response;
  while (reader->Read(&response)) each(response);
  return result_of(reader->Finish());
}

call_result client::watch_readings(std::size_t endpoint, const v1::WatchReadingsRequest& request,
                                   std::chrono::milliseconds deadline, const std::stop_token& stop,
                                   const std::function<bool(const v1::WatchReadingsResponse&)>& each) const {
  grpc::ClientContext context;
  arm(context, deadline);
  const auto reader = wires_[endpoint]->stub->WatchReadings(&context, request);
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  v1::WatchReadingsResponse response;
  bool enough = false;
  while (!enough && reader->Read(&response)) enough = !each(response);
  if (enough) context.TryCancel();
  const grpc::Status end = reader->Finish();
  return enough ? call_result() : result_of(end);
}

}  // namespace busbar::cli
