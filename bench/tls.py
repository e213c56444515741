#!/usr/bin/env python3
"""What TLS costs: starts a server and has bench/tls.c measure it.

    tls.py FROND TLS [rsa]

FROND is the server's binary, TLS the one of tls.c. The certificate's key is P-256, or RSA's.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

DOC = {f"member{i}": "x" * 80 for i in range(10)}


def certificate(directory, rsa):
    kind = ["rsa:2048"] if rsa else ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    subprocess.run(["openssl", "req", "-x509", "-newkey", *kind, "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-keyout", directory / "cert.pem", "-out",
                    directory / "chain.pem"], check=True, capture_output=True)
    (directory / "ini").write_text(f"[ssl]\ncert_file = {directory}/chain.pem\n"
                                   f"key_file = {directory}/cert.pem\n[frond]\nloops = 1\n"
                                   "max_connections_per_address = 5000\n")


def put(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), method="PUT",
                                     headers={"Content-Type": "application/json"})
    urllib.request.urlopen(request).close()


def main(frond, tls, rsa=False):
    with tempfile.TemporaryDirectory(prefix="frond-bench-") as name:
        directory = pathlib.Path(name)
        certificate(directory, rsa)
        server = subprocess.Popen(
            [frond, "serve", "--config", directory / "ini", "--store",
             f"embedded:{directory}/store", "--http", "127.0.0.1:0", "--https", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=open(directory / "log", "w"), text=True)
        try:
            ports = [server.stdout.readline().strip().rstrip("/").rsplit(":", 1)[1]
                     for _ in range(2)]
            put(f"http://127.0.0.1:{ports[0]}/db", {})
            put(f"http://127.0.0.1:{ports[0]}/db/doc", DOC)
            subprocess.run([tls, str(server.pid), *ports, "/db/doc"], check=True)
        finally:
            server.terminate()
            server.wait()


main(*sys.argv[1:])
