"""`tfm serve`, as other programs meet it: the command is started, asked over the network, and told to end."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CLIENT = """
import http.client, socket, sys
from urllib.parse import urlsplit
url, body = urlsplit(sys.argv[1]), sys.argv[2].encode()
connection = http.client.HTTPConnection(url.netloc, timeout=60)
connection.putrequest("POST" if body else "GET", url.path)
for name, value in {"content-type": "application/json", "content-length": len(body)}.items():
    connection.putheader(name, str(value))
if body:
    connection.putheader("expect", "100-continue")
connection.endheaders()
if body:
    connection.sock.recv(1, socket.MSG_PEEK)  # "100 Continue": the server reads this request now
    connection.send(body)
print("under way", flush=True)
print(connection.getresponse().read().decode())
"""


def start_asking(url: str, given: Any = None) -> "subprocess.Popen[str]":
    """A client in a process of its own: tests themselves have no network.

    It says "under way" as soon as the server has begun to read the request, then the answer.
    """
    body = "" if given is None else json.dumps(given)
    return subprocess.Popen([sys.executable, "-c", CLIENT, url, body], stdout=subprocess.PIPE, text=True)


def answer_of(client: "subprocess.Popen[str]") -> str:
    return client.communicate(timeout=90)[0].removeprefix("under way\n")


def ask(url: str, given: Any = None) -> Any:
    return json.loads(answer_of(start_asking(url, given)))


@pytest.fixture
def served(run_directory: Path) -> "Any":
    command = [sys.executable, "-m", "tfm.cli", "serve", "--run", f"en-de={run_directory}", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while not (address := re.search(r"listening on (http://\S+)", said)):
            line = process.stderr.readline()
            assert line, said
            said += line
        yield process, address[1]
        process.kill()


def test_it_translates_and_finishes_what_is_under_way(served: Any) -> None:
    process, url = served
    assert ask(f"{url}languages")[0]["targets"] == ["de"]
    page = answer_of(start_asking(url))
    assert page.startswith("<!DOCTYPE html>") and "http://" not in page.replace("http://www.w3.org", "")
    given = {"q": "the cat sees the house.", "source": "en", "target": "de"}
    one = ask(f"{url}translate", given)["translatedText"]
    assert isinstance(one, str) and one
    many = start_asking(f"{url}translate", {**given, "q": [given["q"]] * 300})
    assert many.stdout is not None and many.stdout.readline() == "under way\n"
    assert ask(f"{url}health") == {"status": "ok"}
    process.send_signal(signal.SIGTERM)
    assert json.loads(answer_of(many))["translatedText"] == [one] * 300
    assert process.wait(60) == 0
    assert "stopped" in process.stderr.read()


def test_a_port_that_is_taken_is_said(served: Any, run_directory: Path) -> None:
    _, url = served
    port = url.rstrip("/").rpartition(":")[2]
    command = [sys.executable, "-m", "tfm.cli", "serve", "--run", f"en-de={run_directory}", "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 5 and f"cannot listen on 127.0.0.1:{port}" in done.stderr
