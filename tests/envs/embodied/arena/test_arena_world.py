"""Determinism, movement, rewards and options of the arena."""

import numpy as np
import pytest

from sensorium.core import ActionKind, ConfigError, EnvError
from sensorium.envs.embodied.arena.backend import ArenaBackend
from sensorium.envs.embodied.arena.camera import PALETTE
from sensorium.envs.embodied.arena.config import COLORS, VOICES, ArenaOptions
from sensorium.envs.embodied.arena.geometry import disc_is_free
from sensorium.envs.embodied.arena.language import sentences
from sensorium.envs.embodied.arena.state import AGENT_RADIUS_M, REACH_M
from sensorium.envs.embodied.arena.tasks import TASKS, build
from sensorium.envs.embodied.config import EmbodiedEnvConfig

FORWARD, LEFT, RIGHT, INTERACT = range(4)


def make(task: str = "arena/find", num_envs: int = 1, seed: int = 0, **settings) -> ArenaBackend:
    values = {"task": task, "visual_obs": ("rgb", "depth"), "audio_obs": ("env_sound",), "proprio": True}
    backend = build(EmbodiedEnvConfig(**(values | settings)), num_envs)
    assert isinstance(backend, ArenaBackend)
    backend.reset(np.arange(num_envs, dtype=np.uint64) + np.uint64(seed), np.ones(num_envs, np.bool_))
    return backend


def place(backend: ArenaBackend, pose, objects) -> None:
    """Put the agent and the objects of world 0 where a test wants them."""
    backend.state.pose[0] = pose
    backend.state.last_pose[0] = pose
    backend.state.objects[0] = objects
    target = backend.state.target[0]
    backend.state.distance[0] = np.hypot(*(np.array(objects[target]) - pose[:2]))


def act(backend: ArenaBackend, *actions: int):
    for action in actions:
        outcome = backend.step(np.array([action]), None, np.ones(1, np.bool_))
    return outcome


def as_bytes(readings) -> dict[str, list[bytes]]:
    return {
        name: [str(row).encode() if isinstance(row, str) else row.tobytes() for row in reading]
        for name, reading in readings.items()
    }


@pytest.mark.parametrize("task", list(TASKS))
def test_worlds_do_not_depend_on_how_many_share_the_call(task):
    actions = np.random.default_rng(0).integers(0, 4, (30, 8))

    def play(num_envs: int, threads: int):
        backend = make(
            task,
            num_envs,
            audio_obs=("speech", "env_sound"),
            text_obs=("instruction",),
            backend_options={"num_threads": threads},
        )
        record = [as_bytes(backend.observe())]
        for step in range(30):
            outcome = backend.step(actions[step, :num_envs], None, np.ones(num_envs, np.bool_))
            record.append(as_bytes(backend.observe()) | {"reward": [row.tobytes() for row in outcome.reward]})
        return record

    one, three, eight = play(1, 1), play(3, 1), play(8, 1)
    for step in range(31):
        for name, rows in eight[step].items():
            assert rows[:3] == three[step][name]
            assert rows[:1] == one[step][name]


def test_threads_do_not_change_what_is_seen():
    single, several = (make(num_envs=70, backend_options={"num_threads": threads}) for threads in (1, 2))
    assert as_bytes(single.observe()) == as_bytes(several.observe())
    several.close()
    several.close()


def test_inactive_and_unmasked_worlds_stay_untouched():
    backend = make(num_envs=3)
    before = as_bytes(backend.observe())
    outcome = backend.step(np.zeros(3, np.int64), None, np.array([True, False, False]))
    backend.reset(np.arange(100, 103, dtype=np.uint64), np.array([False, False, True]))
    after = as_bytes(backend.observe())
    assert outcome.reward[0] != 0
    assert (outcome.reward[1:] == 0).all()
    assert [before["rgb"][i] == after["rgb"][i] for i in range(3)] == [False, True, False]


@pytest.mark.parametrize("task", list(TASKS))
def test_agents_never_enter_walls(task):
    backend = make(task, 32, backend_options={"num_walls": 8})
    rng = np.random.default_rng(1)
    bumps = 0
    for _ in range(150):
        backend.step(rng.choice([FORWARD, FORWARD, FORWARD, LEFT, RIGHT], 32), None, np.ones(32, np.bool_))
        bumps += int(backend.state.body[:, 2].sum())
        for world in range(32):
            x, y, _ = backend.state.pose[world]
            assert disc_is_free(backend.state.walls[world], backend.rules.cell_m, x, y, AGENT_RADIUS_M)
    assert bumps > 100


def test_rooms_keep_their_promises():
    backend = make("arena/listen", 64)
    assert np.isfinite(backend.state.distance).all()
    for world in range(64):
        truth = backend.describe(world)
        assert len({item["color"] for item in truth["objects"]}) == 1
        assert [item["sounds"] for item in truth["objects"]].count(True) == 1
        assert truth["objects"][truth["target"]]["sounds"]
    find = make("arena/find", 64)
    for world in range(64):
        truth = find.describe(world)
        spots = np.array([item["position_m"] for item in truth["objects"]] + [truth["agent"]["position_m"]])
        gaps = np.hypot(*(spots[:, None] - spots[None]).transpose(2, 0, 1)) + 10 * np.eye(len(spots))
        assert gaps.min() > 1.2
        assert len({item["color"] for item in truth["objects"]}) == 3
        assert len({item["shape"] for item in truth["objects"]}) == 1


def test_target_and_colours_are_drawn_evenly():
    backend = make(num_envs=600)
    assert np.bincount(backend.state.target).min() > 160
    target_color = backend.state.color[np.arange(600), backend.state.target]
    assert np.bincount(target_color).min() > 70


def test_target_is_success_and_another_object_is_failure():
    backend = make()
    target = int(backend.state.target[0])
    spots = [[5.0, 5.0], [5.0, 1.0], [1.0, 5.0]]
    spots[target] = [2.15, 1.0]
    place(backend, (1.0, 1.0, 0.0), spots)
    outcome = act(backend, FORWARD)
    assert not outcome.terminated[0]
    assert outcome.reward[0] == pytest.approx(0.2 * 0.3 - 0.01, abs=1e-6)
    outcome = act(backend, FORWARD)
    assert outcome.terminated[0]
    assert outcome.success[0]
    assert outcome.reward[0] == pytest.approx(1.0 + 0.2 * 0.3 - 0.01, abs=1e-6)

    backend = make()
    target = int(backend.state.target[0])
    spots = [[2.15, 1.0], [2.15, 1.0], [2.15, 1.0]]
    spots[target] = [1.0, 5.0]
    spots[(target + 1) % 3] = [5.0, 5.0]
    place(backend, (1.0, 1.0, 0.0), spots)
    outcome = act(backend, FORWARD, FORWARD)
    assert outcome.terminated[0]
    assert not outcome.success[0]
    assert outcome.reward[0] < -0.5


def test_shaping_adds_up_to_the_way_that_was_gained():
    backend = make("arena/listen", backend_options={"shaping": 1.0, "step_cost": 0.0})
    first = backend.state.distance[0]
    total = 0.0
    for action in [FORWARD, LEFT, FORWARD, FORWARD, RIGHT, RIGHT, FORWARD] * 3:
        outcome = act(backend, action)
        if outcome.terminated[0]:
            break
        total += float(outcome.reward[0])
    assert total == pytest.approx(first - backend.state.distance[0], abs=1e-4)


def test_interact_confirms_when_asked_for():
    backend = make(backend_options={"require_interact": True})
    target = int(backend.state.target[0])
    spots = [[5.0, 5.0], [5.0, 1.0], [1.0, 5.0]]
    spots[target] = [2.0, 1.0]
    place(backend, (1.0, 1.0, 0.0), spots)
    assert not act(backend, FORWARD, FORWARD, FORWARD).terminated[0]
    assert backend.state.pose[0, 0] == pytest.approx(1.5)  # objects are solid
    assert backend.state.body[0, 2] == 1.0
    outcome = act(backend, INTERACT)
    assert outcome.terminated[0]
    assert outcome.success[0]


def test_continuous_and_hybrid_actions_move_alike():
    continuous = make(action_space="continuous")
    hybrid = make(action_space="hybrid")
    assert hybrid.action.parameter_mask is not None
    assert hybrid.action.parameter_mask.tolist() == [[True, True], [False, False]]
    for backend in (continuous, hybrid):
        place(backend, (3.0, 3.0, 0.0), [[0.5, 0.5], [5.5, 0.5], [0.5, 5.5]])
    move = np.array([[0.5, -1.0]], np.float32)
    everyone = np.ones(1, np.bool_)
    continuous.step(None, move, everyone)
    hybrid.step(np.array([0]), move, everyone)
    assert continuous.state.pose.tobytes() == hybrid.state.pose.tobytes()
    assert continuous.state.pose[0, 2] == pytest.approx(-np.radians(15))
    assert np.hypot(*(continuous.state.pose[0, :2] - 3.0)) == pytest.approx(0.15)
    before = hybrid.state.pose.copy()
    hybrid.step(np.array([1]), move, everyone)
    assert (hybrid.state.pose == before).all()
    assert hybrid.observe()["proprio"][0].tolist() == [0.0, 0.0, 0.0, 1.0]


def test_proprio_reports_speed_and_turn_rate():
    backend = make()
    place(backend, (3.0, 3.0, 0.0), [[0.5, 0.5], [5.5, 0.5], [0.5, 5.5]])
    act(backend, FORWARD)
    assert backend.observe()["proprio"][0].tolist() == pytest.approx([3.0, 0.0, 0.0, 0.0])
    act(backend, LEFT)
    assert backend.observe()["proprio"][0].tolist() == pytest.approx([0.0, np.radians(150), 0.0, 0.0])
    assert backend.sensors["proprio"].labels == ("forward_speed", "turn_rate", "bumped", "interacted")


def test_readings_fit_their_spaces():
    for waveform in (False, True):
        backend = make(
            "arena/senses",
            12,
            audio_obs=("speech", "env_sound"),
            text_obs=("instruction",),
            waveform=waveform,
        )
        for name, reading in backend.observe().items():
            for row in reading:
                assert backend.sensors[name].space.contains(row), name


def test_instruction_names_the_target_and_speech_says_the_same():
    backend = make(num_envs=40, text_obs=("instruction",), audio_obs=("speech",))
    readings = backend.observe()
    heard = {}
    for world, text in enumerate(readings["instruction"]):
        truth = backend.describe(world)
        target = truth["objects"][truth["target"]]
        assert target["color"] in text
        assert target["shape"] in text
        heard.setdefault((text, truth["voice"]), readings["speech"][world])
        assert (heard[text, truth["voice"]] == readings["speech"][world]).all()
    assert len({text.split()[0] for text in readings["instruction"]}) == 4
    assert {backend.describe(world)["voice"] for world in range(40)} == set(VOICES)
    spectra = list(heard.values())
    assert np.abs(spectra[0] - spectra[1]).max() > 1.0


def test_senses_tell_through_one_channel_only():
    backend = make("arena/senses", 60, audio_obs=("speech", "env_sound"), text_obs=("instruction",))
    readings = backend.observe()
    seen = set()
    for world in range(60):
        telling = {
            "instruction": readings["instruction"][world] != "",
            "speech": np.ptp(readings["speech"][world]) > 1.0,
            "env_sound": np.ptp(readings["env_sound"][world]) > 1.0,
        }
        channel = backend.describe(world)["channel"]
        seen.add(channel)
        assert [name for name, tells in telling.items() if tells] == [channel]
    assert seen == {"instruction", "speech", "env_sound"}


def test_unknown_and_unfit_options_are_explained():
    with pytest.raises(ConfigError, match=r"room_sise.*room_size_m"):
        make(backend_options={"room_sise": 5})
    with pytest.raises(ConfigError, match="pink"):
        make(backend_options={"colors": ["red", "pink", "blue"]})
    with pytest.raises(ConfigError, match="distinct"):
        make(backend_options={"shape_choice": "distinct", "shapes": ["ball"]})
    with pytest.raises(EnvError, match="room_size_m"):
        make(backend_options={"room_size_m": 4, "num_objects": 6, "num_walls": 24})
    assert make(backend_options={"room_size_m": 4, "num_objects": 6}, num_envs=20).num_envs == 20


def test_options_choose_colours_and_shapes():
    options = {
        "colors": ["red", "green", "blue"],
        "shapes": ["ball", "box", "cone"],
        "shape_choice": "distinct",
    }
    backend = make(num_envs=20, backend_options=options)
    for world in range(20):
        items = backend.describe(world)["objects"]
        assert {item["color"] for item in items} == {"red", "green", "blue"}
        assert {item["shape"] for item in items} == {"ball", "box", "cone"}


def test_map_shows_objects_where_they_are():
    backend = make()
    place(backend, (3.0, 3.0, 0.0), [[1.0, 1.0], [5.0, 1.0], [1.0, 5.0]])
    picture = backend.render(0)
    assert picture.shape == (240, 240, 3)
    assert picture.dtype == np.uint8
    for item, (x, y) in enumerate([(1.0, 1.0), (5.0, 1.0), (1.0, 5.0)]):
        column, row = 8 + int(x / 6 * 224), 8 + int((6 - y) / 6 * 224)
        assert picture[row, column].tolist() == PALETTE[backend.state.color[0, item]].astype(int).tolist()


def test_defaults_are_consistent():
    assert all(set(task.action_spaces) == set(ActionKind) for task in TASKS.values())
    assert len(sentences("arena/find")) == 4 * len(COLORS) * 4 + 1
    assert ArenaOptions().forward_m < REACH_M
