import socket
import time
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from live_servers import Client, resources, running
from strange_gym import BREAK, DAWDLE, NOT_SENDABLE, Strange
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from sensorium.core import ConfigError, EnvError
from sensorium.core.frames import pack, unpack
from sensorium.envs.embodied import EmbodiedEnvConfig, MultiModalVectorEnv
from sensorium.envs.remote import RemoteError, RemoteGym, RemoteVectorEnv, SpaceError

STRANGE = {"config": {"task": "strange_gym:Strange-v0", "render": "none"}}
COLORS = {"colors": ["red", "green", "blue"]}
ARENA = {"task": "arena/find", "image_size": 32, "backend_options": COLORS}


@pytest.fixture(scope="module")
def urls():
    with running(
        resources("gymnasium", "strange", **STRANGE),
        resources("embodied", "arena", config=ARENA, vector={"max_num_envs": 8, "max_total_envs": 12}),
        resources("lookup", "lookup"),
        resources("lookup", "off", vector={"enabled": False}),
        resources("gymnasium", "cart", config={"task": "CartPole-v1", "max_env_steps": 12}),
    ) as found:
        yield found


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        is_like = isinstance(b, np.ndarray) and (a.dtype == b.dtype or a.dtype.kind == b.dtype.kind == "U")
        return is_like and np.array_equal(a, b)
    return type(a) is type(b) and a == b


def is_soon(condition, seconds=10.0):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Servers close what clients leave, a little later."""
    yield
    assert is_soon(lambda: not Strange.open)


def test_a_vector_environment_is_the_same_here_and_there(urls):
    here = SyncVectorEnv([Strange] * 3, autoreset_mode=AutoresetMode.NEXT_STEP)
    there = RemoteVectorEnv(urls["strange"], 3)
    assert there.observation_space == here.observation_space
    assert there.action_space == here.action_space
    assert there.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    options = {"length": 3}
    first_here, first_there = (env.reset(seed=[5, None, 7], options=options)[0] for env in (here, there))
    assert same(first_here["said"], first_there["said"])
    assert first_here["count"][0, 1] == first_there["count"][0, 1]
    assert there.observation_space.contains(first_there)
    here.reset(seed=3)
    there.reset(seed=3)
    for step in range(9):  # of three steps each: the next one begins another episode
        seen_here, *rest_here, _ = here.step(np.array([0, 1, 2]))
        seen_there, *rest_there, info = there.step([0, 1, 2])
        assert same(seen_here, seen_there)
        assert all(same(a, b) for a, b in zip(rest_here, rest_there, strict=True))
        if step % 4 == 3:
            assert (rest_there[0] == 0.0).all()
            assert info["seed"].tolist() == [-1, -1, -1]
        else:
            assert info["path"][1] == ["a", step % 4 + 1]
            assert info["about"]["deep"].tolist() == [[0, 1]] * 3
            assert info["thing"] == [None, None, None]
    here.close()
    there.close()
    there.close()


def test_one_environment_is_an_ordinary_one(urls):
    env = RemoteGym(urls["cart"])
    with pytest.raises(EnvError, match="reset"):
        env.step(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its space is wide, and it has no spec
        check_env(env, skip_render_check=True)
    here = gymnasium.make("CartPole-v1", max_episode_steps=12)
    for seed in (4, 5):
        assert same(here.reset(seed=seed)[0], env.reset(seed=seed)[0])
        done = False
        while not done:
            expected = here.step(1)
            found = env.step(1)
            assert same(expected[0], found[0])
            assert expected[1:4] == found[1:4]
            done = found[2] or found[3]
        with pytest.raises(EnvError, match="reset"):
            env.step(0)
    env.close()
    strange = RemoteGym(urls["strange"])
    strange.reset(seed=9)
    observation, reward, *_, info = strange.step(0)
    assert strange.observation_space.contains(observation)
    assert (observation["said"], reward, info["path"]) == ("step 1", 1.0, ["a", 1])
    assert info["about"]["deep"].tolist() == [0, 1]
    strange.close()


def test_an_embodied_task_is_the_same_here_and_there(urls):
    senses = {"visual_obs": ("rgb", "depth"), "audio_obs": ("speech",), "text_obs": ("instruction",)}
    senses |= {"proprio": True, "action_space": "hybrid", "max_episode_steps": 6, "image_size": 16}
    config = EmbodiedEnvConfig(task="arena/find", backend_options=COLORS, **senses)
    here = MultiModalVectorEnv(config, 4)
    remote = config.model_copy(update={"server": urls["arena"]})
    others = [RemoteVectorEnv(urls["arena"], 4, settings=senses), MultiModalVectorEnv(remote, 4)]
    here.action_space.seed(0)
    for env in others:
        assert env.observation_space == here.observation_space
        assert env.action_space == here.action_space
    begun = here.reset(seed=1)
    assert all(same(begun, env.reset(seed=1)) for env in others)
    for _ in range(14):
        actions = here.action_space.sample()
        expected = here.step(actions)
        for env in others:
            found = env.step(actions)
            assert all(same(a, b) for a, b in zip(expected, found, strict=True))
    worlds = others[1].worlds.backend
    assert worlds.describe(2) == here.worlds.backend.describe(2)
    assert same(worlds.render(1), here.worlds.backend.render(1))
    for env in (here, *others):
        env.close()


def test_worlds_of_another_make_are_refused(urls):
    config = EmbodiedEnvConfig(task="arena/find", server=urls["arena"])
    with pytest.raises(ConfigError, match="backend_options"):
        MultiModalVectorEnv(config, 1)
    other = config.model_copy(update={"task": "arena/listen", "audio_obs": ("env_sound",)})
    with pytest.raises(ConfigError, match="serves arena/find"):
        MultiModalVectorEnv(other, 1)
    with pytest.raises(RemoteError, match="may choose"):
        MultiModalVectorEnv(config.model_copy(update={"server": urls["cart"]}), 1)


@pytest.mark.parametrize(
    ("name", "num_envs", "settings", "said"),
    [
        ("lookup", 1, {}, "no observations as arrays"),
        ("arena", 9, {}, "1 to 8"),
        ("arena", 0, {}, "1 to 8"),
        ("arena", 1, {"task": "doom/basic"}, "Unknown setting 'task'"),
        ("arena", 1, {"server": "http://10.0.0.1"}, "Unknown setting 'server'"),
        ("arena", 1, {"visual_obs": ["rgb", "x-ray"]}, "no sensor 'x-ray'"),
        ("arena", 1, {"image_size": 10**6}, "image_size"),
        ("cart", 1, {"image_size": 32}, "may choose"),
    ],
)
def test_environments_that_are_not_to_be_had(urls, name, num_envs, settings, said):
    with pytest.raises(RemoteError, match=said):
        RemoteVectorEnv(urls[name], num_envs, settings=settings)


def test_addresses_where_there_is_nothing(urls):
    with pytest.raises(EnvError, match="refused"):
        RemoteVectorEnv(urls["off"])
    with pytest.raises(EnvError, match="sensorium serve"):
        RemoteVectorEnv("http://127.0.0.1:9")


def test_the_number_of_environments_is_limited_until_others_are_closed(urls):
    held = [RemoteVectorEnv(urls["arena"], 8), RemoteVectorEnv(urls["arena"], 4)]
    with pytest.raises(RemoteError, match="do not fit") as refused:
        RemoteVectorEnv(urls["arena"], 1)
    assert refused.value.kind == "session_limit"
    held[0].close()

    def another():
        try:
            RemoteVectorEnv(urls["arena"], 8).close()
        except RemoteError:
            return False
        return True

    assert is_soon(another)
    held[1].close()


def test_an_action_that_does_not_fit_changes_nothing(urls):
    env = RemoteVectorEnv(urls["strange"], 2)
    with pytest.raises(RemoteError, match="reset comes before"):
        env.step([0, 0])
    env.reset(seed=0)
    for actions in ([0, 10], [0, -1], [0.5, 1], [np.nan, 1], [1], "ab", None, [[0], [1]]):
        with pytest.raises(SpaceError):
            env.step(actions)
    for seed in (-1, [1], [1, -2]):
        with pytest.raises(RemoteError, match="seed"):
            env.reset(seed=seed)
    assert env.step([0, 0])[0]["count"][:, 0].tolist() == [1.0, 1.0]
    env.close()


@pytest.mark.parametrize("action", [BREAK, NOT_SENDABLE])
def test_environments_that_break_are_closed_and_others_go_on(urls, action, caplog):
    other = RemoteVectorEnv(urls["strange"], 1)
    other.reset(seed=0)
    before = len(Strange.open)
    env = RemoteVectorEnv(urls["strange"], 2)
    env.reset(seed=0)
    with pytest.raises(RemoteError, match="log has more") as broken:
        env.step([0, action])
    assert broken.value.kind == "env_failed"
    assert "secret" not in str(broken.value)
    assert is_soon(lambda: len(Strange.open) == before)
    with pytest.raises(RemoteError, match="open") as lost:
        env.step([0, 0])
    assert lost.value.kind == "session_lost"
    assert other.step([0])[1].tolist() == [1.0]
    env.close()
    other.close()


def test_a_client_that_goes_away_leaves_nothing_behind(urls):
    before = len(Strange.open)
    Strange.threads.clear()
    env = RemoteVectorEnv(urls["strange"], 5)
    env.reset(seed=0)
    assert len(Strange.open) == before + 5
    env._connection._socket.socket.shutdown(socket.SHUT_RDWR)  # as when its process is killed
    assert is_soon(lambda: len(Strange.open) == before)
    assert all(name.startswith("sensorium-vector") for name in Strange.threads)


def test_environments_of_which_nothing_is_heard_are_closed():
    limits = {"sessions": {"idle_timeout_s": 0.3, "sweep_every_s": 0.05}}
    with running(resources("gymnasium", "strange", **STRANGE, **limits)) as urls:
        before = len(Strange.open)
        env = RemoteVectorEnv(urls["strange"], 2)
        env.reset()
        assert is_soon(lambda: len(Strange.open) == before)
        with pytest.raises(EnvError, match="closed the connection"):
            env.step([0, 0])
        env.close()


def test_a_step_that_takes_too_long_is_given_up():
    limits = {"limits": {"request_timeout_s": 0.3}}
    with running(resources("gymnasium", "strange", **STRANGE, **limits)) as urls:
        before = len(Strange.open)
        env = RemoteVectorEnv(urls["strange"], 1)
        env.reset()
        with pytest.raises(RemoteError, match=r"within 0.3 s") as late:
            env.step([DAWDLE])
        assert late.value.kind == "request_timeout"
        assert is_soon(lambda: len(Strange.open) == before)
        env.close()
        waits = RemoteVectorEnv(urls["strange"], 1)
        waits.reset()
        waits._connection._timeout_s = 0.1
        with pytest.raises(EnvError, match=r"did not answer within 0.1 s"):
            waits.step([DAWDLE])
        with pytest.raises(EnvError, match="is closed"):
            waits.step([0])


def test_a_server_that_stops_says_so_and_closes_the_environments():
    before = len(Strange.open)
    with running(resources("gymnasium", "strange", **STRANGE)) as urls:
        env = RemoteVectorEnv(urls["strange"], 2)
        env.reset()
    with pytest.raises(EnvError, match="closed the connection"):
        env.step([0, 0])
    assert len(Strange.open) == before


def test_the_key_is_needed_and_pages_of_others_may_not_connect(monkeypatch):
    monkeypatch.setenv("SENSORIUM_API_KEY", "a-long-secret")
    with running(resources("gymnasium", "cart", config={"task": "CartPole-v1"})) as urls:
        RemoteVectorEnv(urls["cart"]).close()  # of the environment
        with pytest.raises(RemoteError, match="401"):
            RemoteVectorEnv(urls["cart"], api_key="another")
        RemoteVectorEnv(urls["cart"], api_key="a-long-secret").close()
        address = "ws" + urls["cart"].removeprefix("http") + "/vector"
        with pytest.raises(InvalidStatus) as refused:
            connect(address, origin="http://evil.example", additional_headers={"X-API-Key": "a-long-secret"})
        assert refused.value.response.status_code == 403


def test_who_sends_too_much_is_slowed_down_or_cut_off():
    limits = {"limits": {"requests_per_s": 20.0, "burst": 5, "max_body_mb": 0.01}}
    with running(resources("gymnasium", "strange", **STRANGE, **limits)) as urls:
        env = RemoteVectorEnv(urls["strange"], 1)
        env.reset()
        begun = time.monotonic()
        for _ in range(12):
            env.step([0])
        assert time.monotonic() - begun > 0.3
        with pytest.raises(EnvError, match="closed the connection"):
            env.reset(options={"long": "x" * 20_000})


def test_workers_share_the_environments():
    from sensorium.servers.config import ResourcesConfig
    from sensorium.servers.routing import Router, build_router_app

    config = ResourcesConfig.model_validate({"environment": "gymnasium", **STRANGE})
    hosts = []
    apps = [resources("gymnasium", f"strange{number}", hosts, **STRANGE) for number in range(2)]
    with running(*apps) as urls:
        router = Router([urls["strange0"], urls["strange1"]])
        with running(("router", lambda runtime: build_router_app(config, "strange", router))) as front:
            before = len(Strange.open)
            envs = [RemoteVectorEnv(front["router"], 1) for _ in range(2)]
            for env in envs:
                env.reset(seed=0)
                assert env.step([0])[1].tolist() == [1.0]
            with pytest.raises(RemoteError, match="log has more"):
                envs[0].step([BREAK])
            envs[0].close()
            envs[1].close()
            assert is_soon(lambda: len(Strange.open) == before)
            assert Client(front["router"]).send("/tasks")[0] == 200


def test_a_client_that_closes_is_told_so_and_hung_up_on(urls):
    with connect("ws" + urls["cart"].removeprefix("http") + "/vector", proxy=None) as there:
        there.send(pack({"type": "close"}))
        assert unpack(there.recv(10)) == {"type": "closed"}
        with pytest.raises(ConnectionClosed):
            there.recv(10)
