"""engine.js in node: what its functions give for what they are given."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tfm.engine import browser

ENGINE = Path(browser.__file__).with_name("engine.js")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def javascript(body: str, data: Any, *, timeout: float = 240) -> Any:
    """What the body of an asynchronous function returns, which has `engine`, `data` and node's `require`."""
    script = (
        f"const engine = require({json.dumps(str(ENGINE))}), fs = require('node:fs');"
        "const data = JSON.parse(fs.readFileSync(0, 'utf8'));"
        f"(async () => {{ {body} }})().then((found) => fs.writeSync(1, JSON.stringify(found)));"
    )
    done = subprocess.run(
        ["node", "--stack-size=4000", "-e", script],
        input=json.dumps(data),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
