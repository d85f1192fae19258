"""Requests that schemathesis generates from the OpenAPI document of a running `extender serve`: no internal error.

FUZZ sets the number of generated requests of each verb and phase, a hundredth of it, and FUZZ_SEED the seed.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.fuzz.serve_process import ServeProcess
from tests.fuzz.test_verbs import COUNT, SEED

SCHEMATHESIS: Final = Path(sys.executable).with_name("schemathesis")
EXAMPLES: Final = max(10, COUNT // 100)
CHECKS: Final = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
_SECONDS_PER_EXAMPLE: Final = 2


def test_no_request_generated_from_the_openapi_document_causes_an_internal_error(
    serving: ServeProcess, tmp_path: Path
) -> None:
    """Each verb gets valid and invalid requests. The statuses and the bodies of the responses are in the document."""
    found = subprocess.run(
        [
            SCHEMATHESIS,
            "run",
            f"http://127.0.0.1:{serving.port}/openapi.json",
            "--include-method=POST",
            f"--checks={CHECKS}",
            "--mode=all",
            f"--max-examples={EXAMPLES}",
            f"--seed={SEED}",
            "--generation-database=none",
            "--no-color",
        ],
        capture_output=True,
        text=True,
        timeout=60 + 8 * EXAMPLES * _SECONDS_PER_EXAMPLE,
        cwd=tmp_path,
        env={**os.environ, "NO_PROXY": "127.0.0.1"},
        check=False,
    )
    print(found.stdout[-1500:])  # noqa: T201 - `make fuzz` shows it
    assert found.returncode == 0, found.stdout[-4000:]
    assert re.search(r"Tested: 4\b", found.stdout), found.stdout[-4000:]
    assert serving.is_ready()
