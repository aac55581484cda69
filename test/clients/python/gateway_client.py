"""Takes etcd3gw, which speaks JSON over HTTP to the gateway, through what test/clients asks of each client."""
import base64
import json
import os
import sys
import threading

import etcd3gw
import requests

HOST, PORT = os.environ["ENDPOINT"].rsplit(":", 1)
URL = f"https://{HOST}:{PORT}/v3/"


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def login(password):
    return requests.post(URL + "auth/authenticate", json={"name": "app", "password": password},
                         verify=os.environ["CA"], timeout=10)


client = etcd3gw.client(host=HOST, port=int(PORT), protocol="https", ca_cert=os.environ["CA"], api_path="/v3/", timeout=10)
answer = login("apw")
check(answer.status_code == 200, f"auth: {answer.text}")
client.session.trust_env = False  # or a bundle of the environment would replace ca_cert
client.session.headers["Authorization"] = answer.json()["token"]

client.put("app/gw", "1")
check(client.get("app/gw") == [b"1"], "put")
print("ok put")
encoded = lambda text: base64.b64encode(text.encode()).decode()
for want in (True, False):
    done = client.transaction({
        "compare": [{"key": encoded("app/gw"), "result": "EQUAL", "target": "VALUE", "value": encoded("1")}],
        "success": [{"request_put": {"key": encoded("app/gw"), "value": encoded("2")}}], "failure": []})
    check(bool(done.get("succeeded")) == want, f"txn: {done}")
print("ok txn")
stream = client.session.post(URL + "watch", data=json.dumps({"create_request": {"key": encoded("app/gw")}}),
                             stream=True, timeout=10)
lines = stream.iter_lines(chunk_size=1)
check(json.loads(next(lines))["result"]["created"], "watch: created")
threading.Timer(0.1, lambda: client.put("app/gw", "3")).start()
event = json.loads(next(lines))["result"]["events"][0]
check(base64.b64decode(event["kv"]["value"]) == b"3", f"watch: {event}")
stream.close()
print("ok watch")
lease = client.lease(30)
client.put("app/leased", "1", lease=lease)
check(0 < lease.refresh() <= 30 and 0 < lease.ttl() <= 30, "lease: time to live")
check(lease.keys() == [b"app/leased"], "lease: keys")
check(lease.revoke() and client.get("app/leased") == [], "lease: key after the end")
print("ok lease")
held = client.session.post(URL + "lock/lock", data=json.dumps({"name": encoded("app/lock"), "lease": client.lease(10).id}), timeout=10)
check(held.status_code == 200, f"lock: {held.text}")
freed = client.session.post(URL + "lock/unlock", data=json.dumps({"key": held.json()["key"]}), timeout=10)
check(freed.status_code == 200, f"lock: {freed.text}")
print("ok lock")
answer = client.session.post(URL + "kv/put", data=json.dumps({"key": encoded("other"), "value": ""}), timeout=10)
check(answer.status_code == 403 and "permission denied" in answer.text, f"auth: {answer.status_code} {answer.text}")
check(login("wrong").status_code != 200, "auth: a wrong password")
print("ok auth")
print("ok tls")
