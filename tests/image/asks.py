"""What is asked of a running box, by both try and ports. Each raises when the answer is not as it should be."""

import json
import os
import re
import subprocess
import sys

from box import HERE, wait_until

CONTROL = "http://localhost:15000"


def expect(answer, status):
    assert answer[0] == status, f"{answer[0]} instead of {status}: {answer[1][:300]}"


def refused(told):
    """What the server said, for the line of the check."""
    return told.strip()[:100]


def stopped(box, seconds):
    code, took = box.stop()
    assert code == 0, f"code {code}:\n{box.text()[-2000:]}"
    assert took < seconds, f"it took {took:.1f} s"
    return f"{took:.2f} s"


def open_to_all(net, namespace, address):
    expect(net.get(namespace, f"http://{address}/nobody/here"), 404)
    record = ("-H", "content-type: application/json", "-d", '{"resourceLogs":[]}')
    expect(net.get(namespace, f"http://{address}:15010/v1/logs", *record), 200)


def dashboard(net, namespace):
    status, page = net.get(namespace, CONTROL + "/")
    assert status == 200 and '<div id="root"' in page, f"{status}: {page[:300]}"
    scripts = re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css))"', page)
    assert scripts, page[:500]
    for script in scripts:
        expect(net.get(namespace, CONTROL + script), 200)
    return f"{len(scripts)} files"


def gateway(net, namespace):
    for url in ("http://localhost/nobody/here", "http://localhost:16000/nobody/here", "https://localhost/nobody/here"):
        status, body = net.get(namespace, url, "-k")
        assert status == 404 and json.loads(body)["status"] == 404, f"{url}: {status} {body[:200]}"


def attached(net, namespace, where):
    """A service dials in from `namespace` and is called from the host."""
    serve = [sys.executable, os.path.join(HERE, "client.py"), "serve", f"amqp://{where}"]
    service = net.start(namespace, *serve, stdout=subprocess.PIPE, text=True)
    assert service.stdout.readline() == "serving\n", "the service did not attach"
    answer = net.get(net.host, "http://localhost/greeter/hello/ann")
    assert answer == (200, "Hello, ann"), answer
    # `ip netns exec` becomes the program itself.
    service.kill()
    service.wait()
    wait_until("it is gone", lambda: net.get(net.host, "http://localhost/greeter/hello/ann")[0] in (404, 503))
