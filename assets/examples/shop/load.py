"""load: customers. Keeps the shop busy at a steady rate, with a few mistakes among them. Standard library only:

    python3 load.py --rate 6 --url http://localhost:16000
"""

import argparse
import http.client
import json
import os
import queue
import random
import signal
import sys
import threading
import time
import urllib.parse

PRODUCTS = ["teapot", "cup", "cup", "kettle", "sencha", "sencha", "sencha", "oolong", "whisk"]
CUSTOMERS = 16

counts = {}
lock = threading.Lock()


def next_request():
    """Mostly orders, some browsing, and what customers do wrong."""
    what = random.random()
    if what < 0.60:
        return "POST", "/orders", {"product": random.choice(PRODUCTS), "quantity": random.randint(1, 4)}
    if what < 0.62:
        return "POST", "/orders", {"product": "unicorn", "quantity": 1}
    if what < 0.64:
        return "POST", "/orders", {"product": "perpetuum", "quantity": 1}
    if what < 0.65:
        return "POST", "/orders", {"product": "cup", "quantity": -1}
    if what < 0.80:
        return "GET", "/catalog/products", None
    return "GET", f"/catalog/products/{random.choice(PRODUCTS)}", None


def send(connection, method, path, body):
    headers = {"user-agent": "customers/1.0", "accept": "application/json"}
    payload = None
    if body is not None:
        payload = json.dumps(body)
        headers["content-type"] = "application/json"
    connection.request(method, path, payload, headers)
    response = connection.getresponse()
    response.read()
    return response.status


def customer(host, port, requests):
    connection = http.client.HTTPConnection(host, port, timeout=35)
    while True:
        request = requests.get()
        try:
            status = send(connection, *request)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            status = type(error).__name__
        with lock:
            counts[status] = counts.get(status, 0) + 1


def report(every):
    while True:
        time.sleep(every)
        with lock:
            line = ", ".join(f"{status}: {count}" for status, count in sorted(counts.items(), key=str))
            broken = any(not isinstance(status, int) for status in counts)
            counts.clear()
        print(f"{'WARN' if broken else 'INFO'} last {every} s: {line or 'nothing'}")


def main():
    parser = argparse.ArgumentParser(description="Customers for the shop.")
    parser.add_argument("--url", default=os.environ.get("REACTOR_GATEWAY_URL", "http://localhost:16000"))
    parser.add_argument("--rate", type=float, default=float(os.environ.get("SHOP_RATE", "6")), help="requests a second")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    url = urllib.parse.urlsplit(options.url)
    # Bounded: when the shop is slower than its customers come, some turn away at the door.
    requests = queue.Queue(CUSTOMERS * 2)
    for _ in range(CUSTOMERS):
        threading.Thread(target=customer, args=(url.hostname, url.port or 80, requests), daemon=True).start()
    threading.Thread(target=report, args=(30,), daemon=True).start()
    print(f"INFO {options.rate:g} requests a second to {options.url}")
    while True:
        time.sleep(random.expovariate(options.rate))
        try:
            requests.put_nowait(next_request())
        except queue.Full:
            with lock:
                counts["turned away"] = counts.get("turned away", 0) + 1


if __name__ == "__main__":
    main()
