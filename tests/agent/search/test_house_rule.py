"""El ritmo es de toda la casa: varios procesos a la vez no lo rompen, y ninguna búsqueda se pierde."""

import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.agent.search import pages
from tests.agent.server import Received, Sent, serving

HOUSE = """
import json, sys
from enlace.agent.tools.search.build import build_backend
from enlace.config import load_agent
changes, name, count = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with build_backend(load_agent("casa", changes)) as chain:
    for number in range(count):
        answer = chain.search(f"{name} {number}")
        print(json.dumps([name, number, answer.outcome, answer.cached, len(answer.results)]), flush=True)
"""


@pytest.mark.timeout(1500)
def test_two_processes_searching_at_once_never_break_the_rule_and_lose_nothing(house: Path, long_run: bool) -> None:
    count, interval = (200, 2.0) if long_run else (25, 0.05)
    arrivals: list[float] = []
    body = pages.DUCKDUCKGO["html-ok-es"].encode()

    def answer(_request: Received) -> Sent:
        arrivals.append(time.monotonic())
        return Sent(body, headers={"Content-Type": "text/html; charset=utf-8"})

    with serving({"/html/": answer}) as server:
        link = f"{{role: primary, backend: duckduckgo, seconds_between_requests: {interval}, url: '{server.origin}'}}"
        changes = json.dumps([f"search.chain=[{link}]", "search.max_wait_seconds=1000"])
        command = [sys.executable, "-c", HOUSE, changes]
        children = [subprocess.Popen([*command, n, str(count)], stdout=subprocess.PIPE, text=True) for n in "ab"]
        lines = [json.loads(line) for child in children for line in child.communicate()[0].splitlines()]
    assert sorted(lines) == [[name, n, "ok", False, 10] for name in "ab" for n in sorted(range(count))]
    assert len(arrivals) == 2 * count
    assert min(later - earlier for earlier, later in pairwise(arrivals)) >= interval
