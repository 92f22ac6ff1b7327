"""The environment `lookup` for OpenEnv's clients, on port 8000.

from openenv.core.generic_client import GenericEnvClient
async with GenericEnvClient(base_url="http://127.0.0.1:8000") as client:
    opening = await client.reset()
    result = await client.step({"tool_name": "submit", "arguments": {"answer": 7}})
"""

from sensorium.interop.openenv_server import OpenEnvServerConfig, serve_openenv

if __name__ == "__main__":
    serve_openenv(OpenEnvServerConfig(environment="lookup", num_tasks=50))
