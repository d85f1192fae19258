"""Arguments in `pluginConfig` that no plugin receives, because a name is misspelled or its plugin is not enabled."""

from collections.abc import Collection

from extender.config.did_you_mean import did_you_mean
from extender.config.model import Profile


def list_unused_args(profile: Profile, enabled_plugins: Collection[str], known_plugins: Collection[str]) -> list[str]:
    """Return one sentence for each plugin with arguments in *profile* that is not one of *enabled_plugins*.

    *known_plugins* are the built-in and installed plugins. kube-scheduler ignores such arguments silently.

    Source: pkg/scheduler/framework/runtime/framework.go, NewFramework (1.36).
    """
    sentences = []
    for name in profile.plugin_config:
        if name in enabled_plugins:
            continue
        path = profile.args_paths.get(name, f"{profile.path}.pluginConfig[{name}].args")
        suggestion = "" if name in known_plugins else did_you_mean(name, enabled_plugins)
        sentences.append(f'{path}: no effect: the profile does not enable plugin "{name}"{suggestion}')
    return sentences
