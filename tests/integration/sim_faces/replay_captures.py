"""Every captured tree comes out of `busbar-sim replay` as it went in."""
import http.client
import json
import os
import ssl
import subprocess
import sys
import urllib.parse

binary, captures = sys.argv[1], sys.argv[2]
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
served = 0
for tree in sorted(os.listdir(captures)):
    folder = os.path.join(captures, tree)
    if not os.path.isdir(os.path.join(folder, "redfish")):
        continue
    process = subprocess.Popen([binary, "replay", folder, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        ready = process.stdout.readline()
        assert ready.startswith("READY https://127.0.0.1:"), (tree, ready)
        port = int(ready.split()[1].rsplit(":", 1)[1])
        client = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
        for path, _, files in os.walk(folder):
            for name in files:
                if name not in ("index.json", "custom.json"):
                    continue
                uri = "/" + os.path.relpath(path, folder)
                client.request("GET", urllib.parse.quote(uri, safe="/?$=&"))
                reply = client.getresponse()
                body = reply.read()
                raw = open(os.path.join(path, name), "rb").read()
                if name == "custom.json":
                    custom = json.loads(raw)
                    assert reply.status == custom["status"] and body.decode() == custom["body"], uri
                else:
                    assert body == raw, uri
                    try:
                        parsed = json.loads(raw)
                    except ValueError:
                        parsed = None
                    only_error = isinstance(parsed, dict) and list(parsed) == ["error"]
                    assert (reply.status >= 400) == only_error, (uri, reply.status)
                served += 1
        client.request("GET", "/redfish/v1/NoSuchThing")
        reply = client.getresponse()
        assert reply.status == 404 and b"ResourceNotFound" in reply.read()
        client.close()
    finally:
        process.terminate()
        process.wait(20)
assert served > 1000, served
print("served", served)
