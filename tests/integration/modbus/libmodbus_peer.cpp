// libmodbus at both ends of the wire. "serve": prints its port and serves one connection after another until
// its standard input closes; "read PORT ADDRESS COUNT": prints the registers. Holding register n holds (n *
// 40503 XOR 0x5a5a) of 16 bits.
#include <arpa/inet.h>
#include <modbus/modbus.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace {

constexpr int registers = 1000;

void end_with_parent() {
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {
  }
  ::_exit(0);
}

int serve() {
  modbus_t* const context = modbus_new_tcp("127.0.0.1", 0);
  modbus_mapping_t* const map = modbus_mapping_new(0, 0, registers, registers);
  if (context == nullptr || map == nullptr) return 1;
  for (int at = 0; at < registers; ++at) {
    map->tab_registers[at] = static_cast<std::uint16_t>(static_cast<unsigned>(at) * 40503U ^ 0x5a5aU);
  }
  int listener = modbus_tcp_listen(context, 4);
  sockaddr_in here{};
  socklen_t size = sizeof here;
  if (listener < 0 || ::getsockname(listener, reinterpret_cast<sockaddr*>(&here), &size) != 0) return 1;
  std::printf("%d\n", ntohs(here.sin_port));
  std::fflush(stdout);
  std::thread(end_with_parent).detach();
  std::array<std::uint8_t, MODBUS_TCP_MAX_ADU_LENGTH> query{};
  while (modbus_tcp_accept(context, &listener) >= 0) {
    for (int length = modbus_receive(context, query.data()); length >= 0;
         length = modbus_receive(context, query.data())) {
      if (length > 0) modbus_reply(context, query.data(), length, map);
    }
    modbus_close(context);
  }
  return 1;
}

int read_from(int port, int address, int count, const char* host = "127.0.0.1") {
  std::array<std::uint16_t, MODBUS_MAX_READ_REGISTERS> words{};
  modbus_t* const context = modbus_new_tcp(host, port);
  if (context == nullptr || modbus_set_slave(context, 1) != 0 || modbus_connect(context) != 0) return 1;
  if (modbus_read_registers(context, address, count, words.data()) != count) {
    std::fprintf(stderr, "%s\n", modbus_strerror(errno));
    return 1;
  }
  for (int at = 0; at < count; ++at)
    std::printf("%s%u", at == 0 ? "" : " ", words[static_cast<std::size_t>(at)]);
  std::printf("\n");
  modbus_free(context);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "serve") return serve();
  if (argc == 6 && std::string_view(argv[1]) == "read") {
    return read_from(std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]), argv[5]);
  }
  if (argc == 5 && std::string_view(argv[1]) == "read") {
    return read_from(std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  }
  std::fputs("usage: libmodbus_peer serve | read PORT ADDRESS COUNT [HOST]\n", stderr);
  return 2;
}
