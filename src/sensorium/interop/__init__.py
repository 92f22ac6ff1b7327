"""Adapters to what others build: environments of theirs here, ours there, tools of any MCP server.

One file for each direction, none of them is imported by anything outside and none imports another library
before it is used:

    mcp               tools of MCP servers beside those of an environment
    aviary            environments and task datasets of Aviary as ours
    aviary_server     ours for Aviary's `TaskDatasetClient`
    openenv           an OpenEnv server as an environment of ours
    openenv_server    ours for OpenEnv's clients
    gymnasium         ours as a `gymnasium.Env` of texts
    trl               ours under TRL's `GRPOTrainer`
    verifiers         ours as a `MultiTurnEnv` of verifiers
    nemo_rl           the files with which NeMo RL trains on ours
"""
