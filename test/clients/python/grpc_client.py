"""Takes python-etcd3 (gRPC) through what test/clients asks of each client."""
import os
import sys

import etcd3

HOST, PORT = os.environ["ENDPOINT"].rsplit(":", 1)


def connect(password):
    return etcd3.client(host=HOST, port=int(PORT), ca_cert=os.environ["CA"], user="app", password=password, timeout=10)


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


client = connect("apw")
client.put("app/py", "1")
check(client.get("app/py")[0] == b"1", "put")
print("ok put")
for want in (True, False):
    done, _ = client.transaction(
        compare=[client.transactions.value("app/py") == "1"],
        success=[client.transactions.put("app/py", "2")], failure=[])
    check(done == want, "txn")
print("ok txn")
events, cancel = client.watch("app/py")
client.put("app/py", "3")
check(next(events).value == b"3", "watch")
cancel()
print("ok watch")
lease = client.lease(30)
client.put("app/leased", "1", lease=lease)
lease.refresh()
check(0 < lease.remaining_ttl <= 30, "lease: time to live")
lease.revoke()
check(client.get("app/leased")[0] is None, "lease: key after the end")
print("ok lease")
# The library keeps locks below /locks/.
lock = client.lock("py", ttl=10)
check(lock.acquire(timeout=5) and lock.is_acquired() and lock.release(), "lock")
print("ok lock")
try:
    client.put("other", "1")
    check(False, "auth: a key that is not permitted")
except Exception as error:  # the library has no class of its own for it
    check("permission denied" in str(error), f"auth: {error}")
try:
    connect("wrong")
    check(False, "auth: a wrong password")
except Exception as error:
    check("authentication failed" in str(error), f"auth: {error}")
print("ok auth")
print("ok tls")
