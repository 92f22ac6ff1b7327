"""`doom/find`: rooms that a seed decides, built in the engine as drawn, solved with the senses needed."""

import hashlib
import math
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from sensorium.core import ActionKind, ConfigError, EnvError
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.doom.actions import ActionTable
from sensorium.envs.embodied.doom.find.config import CELL_UNITS, FindOptions
from sensorium.envs.embodied.doom.find.expert import FindExpert, run_expert
from sensorium.envs.embodied.doom.find.kinds import KINDS, WORDINGS, sentences
from sensorium.envs.embodied.doom.find.paths import WalkingDistance
from sensorium.envs.embodied.doom.find.referee import Referee
from sensorium.envs.embodied.doom.find.room import TOUCH_UNITS, Room, draw_meaning, draw_room
from sensorium.envs.embodied.doom.find.wad import build_wad
from sensorium.envs.embodied.doom.scenarios import SCENARIOS
from sensorium.envs.embodied.registry import build_backend, find_task

needs_engine = pytest.mark.doom
OPTIONS = FindOptions()


class Engine:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def send_game_command(self, command: str) -> None:
        self.messages.append(command)


def first_room(seed: int, options: FindOptions = OPTIONS) -> Room:
    return next(room for attempt in range(1000) if (room := draw_room(seed, options, attempt)) is not None)


@contextmanager
def running(num_envs: int = 1, *, options: Mapping[str, Any] | None = None, **config: Any) -> Iterator[Any]:
    pytest.importorskip("vizdoom")
    settings = {"visual_obs": (), "text_obs": ("instruction",)} | config
    backend = build_backend(
        EmbodiedEnvConfig(
            task="doom/find", backend_options={"in_process": True} | dict(options or {}), **settings
        ),
        num_envs,
    )
    backend.reset(np.arange(num_envs, dtype=np.uint64), np.ones(num_envs, np.bool_))
    try:
        yield backend
    finally:
        backend.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": ["red torch", "blue pilar", "barrel"]}, r"kinds must name some of red torch.*blue pilar"),
        ({"kinds": ["barrel", "barrel", "tree"]}, "each at most once"),
        ({"kinds": ["barrel", "tree"]}, "3 objects need as many kinds, found 2: barrel, tree"),
        ({"num_object": 2}, "num_objects"),
        ({"room_cells": 5, "num_walls": 12, "num_objects": 4}, r"at most 18. Raise room_cells"),
        ({"sounding": "sometimes"}, "hidden"),
    ],
)
def test_options_that_do_not_fit_name_those_that_do(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_backend(EmbodiedEnvConfig(task="doom/find", backend_options=options), 1)


def test_other_tasks_do_not_have_its_options() -> None:
    with pytest.raises(ConfigError, match="num_objects"):
        build_backend(EmbodiedEnvConfig(task="doom/basic", backend_options={"num_objects": 2}), 1)


def test_actions_walk_and_turn() -> None:
    table = ActionTable(SCENARIOS["find"], ActionKind.DISCRETE)
    assert table.spec.option_names == (
        "noop",
        "turn_left",
        "turn_right",
        "move_forward",
        "move_forward+turn_left",
        "move_forward+turn_right",
    )
    assert ActionTable(SCENARIOS["find"], ActionKind.CONTINUOUS).spec.continuous_names == ("turn", "forward")


def test_colour_is_what_the_instruction_names() -> None:
    assert find_task("doom/find").color_is_label
    assert not find_task("doom/basic").color_is_label


def test_sentence_names_the_target() -> None:
    options = FindOptions(kinds=("tree", "barrel", "red torch", "blue skull"))
    said = sentences(options.kinds)
    assert len(said) == 4 * len(WORDINGS)
    for seed in range(50):
        meaning = draw_meaning(seed, options)
        assert len(set(meaning.kinds)) == options.num_objects
        assert said[meaning.sentence].endswith(options.kinds[meaning.kinds[meaning.target]])


def test_targets_kinds_and_wordings_are_drawn_evenly() -> None:
    drawn = [draw_meaning(seed, OPTIONS) for seed in range(1800)]
    targets = np.bincount([meaning.target for meaning in drawn])
    assert targets.size == 3
    assert targets.min() > 500
    named = np.bincount([meaning.sentence for meaning in drawn], minlength=len(KINDS) * len(WORDINGS))
    assert named.reshape(len(WORDINGS), -1).sum(axis=1).min() > 380
    assert named.reshape(len(WORDINGS), -1).sum(axis=0).min() > 60


def test_no_two_seeds_share_a_room() -> None:
    assert len({first_room(seed).places for seed in range(1000)}) == 1000


@pytest.mark.parametrize("options", [OPTIONS, FindOptions(num_walls=8, num_objects=5)])
def test_things_stand_off_the_walls_and_apart(options: FindOptions) -> None:
    for seed in range(40):
        room = first_room(seed, options)
        standing = [(room.start[:2], 16), *((place, 20) for place in room.places)]
        assert len(set(room.walls)) == options.num_walls
        for (x, y), half in standing:
            assert half <= min(x, y)
            assert max(x, y) <= options.room_cells * CELL_UNITS - half
            for column, row in room.walls:
                gap_x = abs(x - (column + 0.5) * CELL_UNITS) - CELL_UNITS / 2
                gap_y = abs(y - (row + 0.5) * CELL_UNITS) - CELL_UNITS / 2
                assert max(gap_x, gap_y) >= half
        for index, (here, _) in enumerate(standing):
            for there, _ in standing[:index]:
                assert max(abs(here[0] - there[0]), abs(here[1] - there[1])) > TOUCH_UNITS


@pytest.mark.parametrize(("num_walls", "num_objects"), [(12, 3), (6, 6)])
def test_the_most_that_may_stand_in_the_smallest_room_fits(num_walls: int, num_objects: int) -> None:
    referee = Referee(FindOptions(room_cells=5, num_walls=num_walls, num_objects=num_objects))
    for seed in range(20):
        referee.furnish(Engine(), seed)
        assert len(referee.describe()["walls"]) == num_walls


def test_a_room_in_which_nothing_fits_says_what_to_change() -> None:
    unchecked = FindOptions.model_construct(room_cells=5, num_walls=24, num_objects=6)
    with pytest.raises(EnvError, match=r"6 objects and 24 walls.*room_cells"):
        Referee(unchecked).furnish(Engine(), 0)


def test_wad_is_the_same_in_every_process() -> None:
    code = (
        "import hashlib; from sensorium.envs.embodied.doom.find.wad import build_wad; "
        "print(hashlib.sha256(build_wad(7)).hexdigest())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == hashlib.sha256(build_wad(7)).hexdigest()


def test_wad_directory_leads_to_its_lumps() -> None:
    data = build_wad(6)
    magic, count, offset = struct.unpack_from("<4sII", data)
    assert magic == b"PWAD"
    assert offset + 16 * count == len(data)
    lumps = {}
    for entry in range(count):
        start, size, name = struct.unpack_from("<II8s", data, offset + 16 * entry)
        lumps[name.rstrip(b"\0").decode()] = data[start : start + size]
    assert lumps["TEXTMAP"].count(b"sector {") == 6 * 6 + 1
    assert lumps["BEHAVIOR"].startswith(b"ACS\0")
    assert {f"SNSTON{index:02d}" for index in range(len(KINDS))} <= lumps.keys()


def test_walking_distance_by_hand() -> None:
    # Nodes lie at 8, 24, 40, ...: from (40, 104) straight east to (328, 104) it is 288.
    open_room = Room(7, (), (40, 104, 0), ((328, 104),))
    assert WalkingDistance(open_room, 0).units(40.0, 104.0) == pytest.approx(288.0)
    # A wall across the whole way but for the topmost of seven rows: up, over and down again.
    blocked = Room(7, tuple((3, row) for row in range(6)), (40, 104, 0), ((328, 104),))
    around = WalkingDistance(blocked, 0).units(40.0, 104.0)
    shortest = math.hypot(172 - 40, 404 - 104) + (276 - 172) + math.hypot(328 - 276, 404 - 104)
    assert shortest < around < 1.1 * shortest
    assert math.isinf(
        WalkingDistance(Room(7, tuple((3, row) for row in range(7)), (40, 104, 0), ((328, 104),)), 0).units(
            40.0, 104.0
        )
    )


def test_the_way_leads_round_other_objects() -> None:
    alone = Room(7, (), (40, 224, 0), ((408, 224),))
    in_the_way = Room(7, (), (40, 224, 0), ((408, 224), (224, 224)))
    assert (
        WalkingDistance(in_the_way, 0).units(40.0, 224.0) > WalkingDistance(alone, 0).units(40.0, 224.0) + 10
    )


def test_rewards_by_hand_and_messages_that_the_engine_takes() -> None:
    options = FindOptions(num_walls=12, num_objects=6, step_cost=0.25, shaping=0.5, wrong_penalty=0.75)
    engine, referee = Engine(), Referee(options)
    referee.furnish(engine, 3)
    assert max(map(len, engine.messages)) < 128
    truth = referee.describe()
    target = truth["target"]
    places = [item["position"] for item in truth["objects"]]
    start = truth["distance_m"]
    x, y = places[target]
    reward, ended, right = referee.judge(x, y + 40.0)
    remaining = referee.describe()["distance_m"]
    assert (ended, right) == (True, True)
    assert remaining < 2.0
    assert reward == pytest.approx(0.5 * (start - remaining) - 0.25 + 1.0)
    wrong = places[(target + 1) % 6]
    before = remaining
    reward, ended, right = referee.judge(wrong[0] - 36.0, wrong[1])
    assert (ended, right) == (True, False)
    after = referee.describe()["distance_m"]
    assert reward == pytest.approx(0.5 * (before - after) - 0.25 - 0.75)


@needs_engine
def test_the_engine_builds_the_room_that_was_drawn() -> None:
    with running(3, options={"objects": True, "num_walls": 8, "num_objects": 4}) as backend:
        for world in range(3):
            truth = backend.describe(world)
            room, meaning = (
                first_room(world, backend.games._host._games[world]._settings.find),
                truth["target"],
            )
            assert [tuple(item["position"]) for item in truth["objects"]] == list(room.places)
            assert truth["position"][:2] == list(room.start[:2])
            assert truth["angle"] == pytest.approx(room.start[2] * 360 / 256, abs=1e-3)
            built = {
                (o.name, o.position_x, o.position_y, o.position_z)
                for o in backend.games._host._games[world]._state.objects
            }
            for item in truth["objects"]:
                name = "Sns" + item["kind"].title().replace(" ", "")
                assert (name, *map(float, item["position"]), 0.0) in built
            speakers = [entry for entry in built if entry[0].endswith("Hidden")]
            assert [entry[1:3] for entry in speakers] == [tuple(map(float, room.places[meaning]))]


@needs_engine
def test_text_and_truth_say_the_same() -> None:
    with running(
        4, audio_obs=("speech",), options={"voices": ["en-us", "en-gb"], "kinds": list(KINDS)[:3]}
    ) as backend:
        texts = backend.observe()["instruction"]
        for world in range(4):
            truth = backend.describe(world)
            assert truth["instruction"] == texts[world]
            assert texts[world].endswith(truth["objects"][truth["target"]]["kind"])
            assert truth["voice"] in ("en-us", "en-gb")
            assert truth["rate_wpm"] == 160


def wall_between(truth: Mapping[str, Any]) -> bool:
    """Whether the straight line to the target's middle meets a wall."""
    start, end = np.array(truth["position"][:2]), np.array(truth["objects"][truth["target"]]["position"])
    points = start + np.linspace(0.0, 1.0, 2000)[:, None] * (end - start)
    cells = {tuple(cell) for cell in (points // CELL_UNITS).astype(int).tolist()}
    return bool(cells & {tuple(cell) for cell in truth["walls"]})


@needs_engine
def test_a_hidden_target_sounds_and_one_in_sight_does_not() -> None:
    with running(1, visual_obs=(), audio_obs=("env_sound",), waveform=True) as backend:
        heard = []
        for seed in range(60):
            backend.reset(np.array([seed], np.uint64), np.ones(1, np.bool_))
            loudness = np.abs(backend.observe()["env_sound"]).max()
            assert (loudness > 1e-3) == wall_between(backend.describe(0)), seed
            heard.append(loudness > 1e-3)
    assert 4 <= sum(heard) <= 30


@needs_engine
def test_the_ear_nearer_to_the_target_hears_it_louder() -> None:
    lateral, distances, loudness = 0, [], []
    with running(1, audio_obs=("env_sound",), waveform=True, options={"sounding": "target"}) as backend:
        for seed in range(40):
            backend.reset(np.array([seed], np.uint64), np.ones(1, np.bool_))
            left, right = np.square(backend.observe()["env_sound"][0]).sum(axis=-1)
            truth = backend.describe(0)
            (x, y), (a, b) = truth["position"][:2], truth["objects"][truth["target"]]["position"]
            to_left = math.sin(math.atan2(b - y, a - x) - math.radians(truth["angle"]))
            distances.append(math.hypot(a - x, b - y))
            loudness.append(math.log(left + right))
            if abs(to_left) > 0.2:
                lateral += 1
                assert np.sign(left - right) == np.sign(to_left), seed
    assert lateral > 20
    assert np.corrcoef(distances, loudness)[0, 1] < -0.5


@needs_engine
def test_every_object_or_none_sounds_when_asked() -> None:
    loudest = {}
    for sounding in ("none", "target", "all"):
        with running(
            1, audio_obs=("env_sound",), waveform=True, options={"sounding": sounding, "num_objects": 6}
        ) as backend:
            loudest[sounding] = float(np.square(backend.observe()["env_sound"]).sum())
    assert loudest["none"] == 0.0
    assert 0.0 < loudest["target"] < loudest["all"]


@needs_engine
def test_touching_another_object_is_failure_with_a_last_reading() -> None:
    with running(1, visual_obs=("rgb",), options={"num_walls": 0}) as backend:
        truth = backend.describe(0)
        wrong = truth["objects"][(truth["target"] + 1) % 3]["kind"]
        expert = FindExpert(truth, f"go to the {wrong}")
        for _ in range(find_task("doom/find").default_max_steps):
            before = backend.observe()["rgb"]
            action = backend.action.option_names.index(expert.act(backend.describe(0)))
            outcome = backend.step(np.array([action]), None, np.ones(1, np.bool_))
            if outcome.terminated[0]:
                break
        assert outcome.terminated[0]
        assert not outcome.success[0]
        assert outcome.reward[0] < -0.3
        assert (backend.observe()["rgb"] != before).any()


@needs_engine
def test_every_kind_looks_different_from_the_others() -> None:
    """Pictures of one kind alone in the same place: at least ten pixels of 48x48 tell any two apart."""
    pictures: list[Any] = []
    seed, alone = facing_seed(), {"num_objects": 1, "num_walls": 0}
    with running(1, visual_obs=("rgb",)) as backend:
        backend.observe()  # begins the first episode, which is not ours
        game = backend.games._host._games[0]
        for kind in KINDS:
            game._referee = Referee(FindOptions(kinds=(kind,), **alone))
            game.reset(seed)
            picture = backend.observe()["rgb"][0].astype(int)
            for other in pictures:
                assert (np.abs(picture - other).max(axis=-1) > 30).sum() >= 10, kind
            pictures.append(picture)


def facing_seed() -> int:
    """A seed whose player looks at the object, three to six metres away."""
    options = FindOptions(kinds=("barrel",), num_objects=1, num_walls=0)
    for seed in range(1000):
        room = first_room(seed, options)
        (x, y, heading), (a, b) = room.start, room.places[0]
        bearing = math.atan2(b - y, a - x) - 2 * math.pi * heading / 256
        if math.cos(bearing) > 0.9 and 96 < math.hypot(a - x, b - y) < 192:
            return seed
    raise AssertionError("no such seed")


@needs_engine
def test_expert_succeeds_and_needs_the_instruction() -> None:
    told, untold = (
        run_expert(options={"in_process": True}),
        run_expert(blank=True, options={"in_process": True}),
    )
    assert told.mean() >= 0.95
    assert untold.mean() <= told.mean() - 0.3
    assert untold.mean() == pytest.approx(1 / 3, abs=0.18)


@needs_engine
@pytest.mark.slow
@pytest.mark.parametrize("num_objects", [1, 2, 6])
def test_guessing_falls_to_one_in_so_many(num_objects: int) -> None:
    options = {"in_process": True, "num_objects": num_objects, "room_cells": 10}
    assert run_expert(episodes=150, options=options).mean() >= 0.95
    assert run_expert(episodes=150, blank=True, options=options).mean() == pytest.approx(
        1 / num_objects, abs=0.12
    )
