"""The head server: tells clients of NeMo Gym which servers there are, and where."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml
from fastapi import FastAPI
from starlette.responses import Response

from sensorium.servers.apps import add_get, build_app
from sensorium.servers.config import HeadConfig, ServerConfig
from sensorium.servers.layout import Instance
from sensorium.servers.replies import json_response
from sensorium.servers.security import build_access


class Entry(NamedTuple):
    """A server that the head tells of."""

    instance: Instance
    url: str
    pid: int


def build_head_app(config: HeadConfig, entries: Sequence[Entry]) -> FastAPI:
    """The app of the head server.

    Args:
        config: Where it listens.
        entries: The servers.

    Raises:
        ConfigError: The address needs a key.
    """
    own = ServerConfig(host=config.host, port=config.port, api_key_env=config.api_key_env)
    app = build_app("head", own, build_access(own, "the head server"))
    began = time.time()
    text = yaml.safe_dump(global_config(config, entries), sort_keys=False)

    async def global_config_dict_yaml() -> Response:
        """Everything that was configured, without secrets: a JSON text that holds YAML."""
        return json_response(text)

    async def server_instances() -> Response:
        """The servers."""
        return json_response([_described(entry, began) for entry in entries])

    add_get(app, "/global_config_dict_yaml", global_config_dict_yaml)
    add_get(app, "/server_instances", server_instances)
    return app


def global_config(config: HeadConfig, entries: Sequence[Entry]) -> dict[str, Any]:
    """The servers in NeMo Gym's layout, with the addresses that they have."""
    made: dict[str, Any] = {}
    for entry in entries:
        place = urlsplit(entry.url)
        block = {"entrypoint": "app.py", **entry.instance.block, "host": place.hostname, "port": place.port}
        if entry.instance.kind == "resources_servers":
            block.setdefault("domain", "other")
        made[entry.instance.name] = {entry.instance.kind: {entry.instance.implementation: block}}
    return {**made, "head_server": {"host": config.host, "port": config.port}}


def _described(entry: Entry, began: float) -> dict[str, Any]:
    place = urlsplit(entry.url)
    return {
        "process_name": entry.instance.name,
        "server_type": entry.instance.kind,
        "name": entry.instance.implementation,
        "host": place.hostname,
        "port": place.port,
        "url": entry.url,
        "entrypoint": "app.py",
        "config_path": entry.instance.name,
        "dir_path": "",
        "pid": entry.pid,
        "status": "success",
        "start_time": began,
        "uptime_seconds": time.time() - began,
    }
