"""The OpenAPI document and the service agree."""

import subprocess
import sys
from pathlib import Path

from extender.extender_api.routes import new_app
from tests.unit.extender_api.http_harness import make_service, serve_in_thread
from tests.unit.extender_api.test_bind import FakeApiServer, make_bind_verb

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# An OpenAPI document cannot express that node names are unique, nor that Go rejects 1.0 as an integer.
EXCLUDED_CHECK = "positive_data_acceptance"


def test_requests_generated_from_the_openapi_document_pass(tmp_path: Path) -> None:
    """Valid and invalid requests have the statuses, content types and bodies of the document."""
    with serve_in_thread(new_app(make_service(bind_verb=make_bind_verb(FakeApiServer())[0]))) as port:
        command = [SCHEMATHESIS, "run", f"http://127.0.0.1:{port}/openapi.json", "--no-color", "--seed=1"]
        bounds = ["--max-examples=30", f"--exclude-checks={EXCLUDED_CHECK}", "--generation-database=none"]
        found = subprocess.run(
            [*command, *bounds], capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False
        )
    assert found.returncode == 0, found.stdout[-4000:]
    assert "Tested: 8" in found.stdout
