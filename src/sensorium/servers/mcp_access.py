"""How a session's tools are reached over MCP."""

from typing import Any

from sensorium.servers.hosting import EpisodeHost
from sensorium.servers.identity import MCP_HEADER, session_token

MCP_PATH = "/mcp"


def tool_metadata(host: EpisodeHost, id: str) -> dict[str, Any] | None:
    """Where a session's tools are, in the form of NeMo Gym; None when they are not offered over MCP."""
    if not host.config.expose_tools_over_mcp:
        return None
    token = session_token(host.runtime.signer, host.runtime.worker, id)
    return {
        "server_name": host.name,
        "url_path": MCP_PATH,
        "transport": "http",
        "headers": {MCP_HEADER: token},
    }
