"""A Modbus TCP device by pymodbus: holding register n holds (n * 40503 XOR 0x5a5a) of 16 bits. Prints its port, serves until its
standard input closes."""
import asyncio
import socket
import sys
import threading

from pymodbus.datastore import ModbusSequentialDataBlock, ModbusServerContext, ModbusSlaveContext
from pymodbus.server import StartAsyncTcpServer


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def main():
    values = [(address * 40503 ^ 0x5A5A) & 0xFFFF for address in range(1000)]
    unit = ModbusSlaveContext(hr=ModbusSequentialDataBlock(0, list(values)), ir=ModbusSequentialDataBlock(0, list(values)),
                              zero_mode=True)
    port = free_port()
    print(port, flush=True)
    await StartAsyncTcpServer(ModbusServerContext(slaves=unit, single=True), address=("127.0.0.1", port))


def end_with_parent():
    sys.stdin.read()
    import os
    os._exit(0)


threading.Thread(target=end_with_parent, daemon=True).start()
asyncio.run(main())
