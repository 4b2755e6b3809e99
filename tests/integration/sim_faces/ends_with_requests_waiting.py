"""Told to stop while requests wait in its devices and event streams are open, the simulator ends in order, with 0."""
import base64
import sys

from simulator import Simulator

for _ in range(5):
    with Simulator(sys.argv[1], profile="real") as sim:
        login = base64.b64encode(("root:%s" % sim.password).encode()).decode()
        header = "Host: bmc\r\nAuthorization: Basic %s\r\n\r\n" % login
        waiting = []
        for _ in range(40):
            link = sim.connect("1.51")
            link.connect()
            link.sock.sendall(("GET /redfish/v1/Chassis HTTP/1.1\r\n" + header).encode())
            waiting.append(link)
        stream = sim.connect("1.51")
        stream.connect()
        stream.sock.sendall(("GET /redfish/v1/EventService/SSE HTTP/1.1\r\n" + header).encode())
        assert waiting[0].sock.recv(1)  # the first answer is there, most others wait
print("ended")
