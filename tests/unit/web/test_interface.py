"""The document of the interface, and the service behind it, as a stranger's tool sees them."""

import subprocess
import sys
from pathlib import Path

from extender.web.app import new_app
from tests.unit.web.served import a_site, served
from tests.unit.web.test_binding import Server, a_binder

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# The document cannot say that no two nodes have one name, nor that 1.0 is no whole number to Go.
NOT_TOLD = "positive_data_acceptance"


def test_requests_made_from_the_document_find_nothing(tmp_path: Path) -> None:
    """Right and wrong requests of every kind; statuses, types and bodies of the answers are as described."""
    with served(new_app(a_site(binder=a_binder(Server())[0]))) as port:
        command = [SCHEMATHESIS, "run", f"http://127.0.0.1:{port}/openapi.json", "--no-color", "--seed=1"]
        bounds = ["--max-examples=30", f"--exclude-checks={NOT_TOLD}", "--generation-database=none"]
        found = subprocess.run(
            [*command, *bounds], capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False
        )
    assert found.returncode == 0, found.stdout[-4000:]
    assert "Tested: 8" in found.stdout
