"""Reads registers of a device by pymodbus and prints them: pymodbus_client.py PORT ADDRESS COUNT"""
import sys

from pymodbus.client import ModbusTcpClient

port, address, count = (int(word) for word in sys.argv[1:])
with ModbusTcpClient("127.0.0.1", port=port) as client:
    answer = client.read_holding_registers(address, count, slave=1)
    if answer.isError():
        sys.exit(str(answer))
    print(" ".join(str(word) for word in answer.registers))
