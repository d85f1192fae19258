"""Write kubeconfigs and exec plugins."""

from pathlib import Path
from typing import Any

import yaml

AUTHORIZATION = "Authorization"


def write_kubeconfig(
    file: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **more: Any
) -> str:
    """Write a kubeconfig with one context `here`; *more* overrides its fields."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "there", "user": "me"}}],
        "clusters": [{"name": "there", "cluster": {"server": "https://one:8080/", **(cluster or {})}}],
        "users": [{"name": "me", "user": user or {}}],
        **more,
    }
    file.write_text(yaml.safe_dump(content))
    return str(file)


def write_exec_plugin(folder: Path, status: str, *, code: int = 0, version: str = "v1") -> dict[str, Any]:
    """Write an exec plugin that returns *status* and counts its runs in the file `runs`."""
    script = folder / "plugin.sh"
    answer = f'{{"apiVersion":"client.authentication.k8s.io/{version}","kind":"ExecCredential","status":{status}}}'
    script.write_text(f"#!/bin/sh\necho \"$WHO\" >> '{folder}/runs'\necho broken >&2\necho '{answer}'\nexit {code}\n")
    script.chmod(0o755)
    env = [{"name": "WHO", "value": "me"}]
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin.sh", "env": env}
