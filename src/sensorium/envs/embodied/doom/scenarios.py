"""The scenarios as data: what to do, which buttons, what counts as success.

All but `find` ship with ViZDoom: rewards, maps and episode ends are the engine's own (its `.cfg` and `.wad`
files). Not here: `cig`,
`multi`, `multi_duel` and `multi_deathmatch`, which are games between several players (started for a single
player, `cig` and `multi_duel` crash the engine and `multi` has no opponent), and the campaign levels.
"""

from dataclasses import dataclass
from enum import StrEnum

from sensorium.envs.embodied.doom.find.kinds import KINDS, sentences


class SuccessRule(StrEnum):
    """When an episode counts as solved."""

    EXIT = "exit"
    """The map's exit was triggered by a player who is alive: the goal was reached."""
    KILLS = "kills"
    """At least `Scenario.kills` monsters were killed, however the episode ends."""
    TARGET = "target"
    """The object that the instruction names was touched, and no other one before."""
    SURVIVAL = "survival"
    """The player is alive when the step limit is reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario."""

    name: str
    """Stem of its `.cfg` and `.wad` files, if it is shipped."""
    summary: str
    instructions: tuple[str, ...]
    """Sentences that say the same; each episode's seed picks one."""
    buttons: tuple[str, ...]
    """The engine's on/off buttons that the agent may press, in the order of the `.cfg`."""
    time_limit_tics: int = 2100
    """The scenario's own limit in engine tics (1/35 s); where it has none, 2100 as in its siblings."""
    rule: SuccessRule
    shipped: bool = True
    """Whether it comes with ViZDoom; otherwise its map is made here, see `doom.find`."""
    kills: int = 0
    looks: bool = False
    """Whether the agent may look up and down (continuous actions)."""
    combinations: tuple[tuple[str, str], ...] = ()
    """Pairs of buttons that are useful together and get an option of their own (discrete actions)."""
    needs: tuple[tuple[str, ...], ...] = ()
    """Senses without which the goal is not told; see `TaskSpec.needs`."""
    color_is_label: bool = False
    """See `TaskSpec.color_is_label`."""


_SHOOT = ("MOVE_LEFT", "MOVE_RIGHT", "ATTACK")
_AIM = ("TURN_LEFT", "TURN_RIGHT", "ATTACK")
_WALK = ("TURN_LEFT", "TURN_RIGHT", "MOVE_FORWARD")
_WALK_TURNING = (("MOVE_FORWARD", "TURN_LEFT"), ("MOVE_FORWARD", "TURN_RIGHT"))
_KILL_SENTENCES = ("Shoot the monster.", "Step in front of the monster and kill it.")

_ALL = (
    Scenario(
        name="basic",
        summary="Step sideways until the monster is ahead and shoot it; ends when it is dead.",
        instructions=_KILL_SENTENCES,
        buttons=_SHOOT,
        time_limit_tics=300,
        rule=SuccessRule.EXIT,
    ),
    Scenario(
        name="basic_audio",
        summary="As basic, but the monster is invisible: hear where it cries, then shoot it.",
        instructions=("Shoot the invisible monster that you hear.", "Listen, find the monster and kill it."),
        buttons=_SHOOT,
        time_limit_tics=300,
        rule=SuccessRule.EXIT,
        needs=(("env_sound",),),
    ),
    Scenario(
        name="basic_notifications",
        summary="Three monsters; a message at the start names the one to shoot, another one costs 44 points.",
        instructions=("Shoot the monster that the message names.", "Read the message and kill that monster."),
        buttons=_SHOOT,
        time_limit_tics=300,
        rule=SuccessRule.EXIT,
        needs=(("notifications",),),
    ),
    Scenario(
        name="deadly_corridor",
        summary="Reach the green armour at the end of a corridor of monsters; ends there or in death.",
        instructions=("Get to the green armour alive.", "Fight your way down the corridor to the armour."),
        buttons=(
            "MOVE_LEFT",
            "MOVE_RIGHT",
            "ATTACK",
            "MOVE_FORWARD",
            "MOVE_BACKWARD",
            "TURN_LEFT",
            "TURN_RIGHT",
        ),
        rule=SuccessRule.EXIT,
        combinations=(*_WALK_TURNING, ("MOVE_FORWARD", "ATTACK")),
    ),
    Scenario(
        name="deathmatch",
        summary="Collect weapons and kill monsters that keep coming; ends in death. Solved with 10 kills.",
        instructions=("Kill as many monsters as you can.", "Find weapons and kill every monster you meet."),
        buttons=(
            "ATTACK",
            "SPEED",
            "STRAFE",
            "MOVE_RIGHT",
            "MOVE_LEFT",
            "MOVE_BACKWARD",
            "MOVE_FORWARD",
            "TURN_RIGHT",
            "TURN_LEFT",
            "SELECT_WEAPON1",
            "SELECT_WEAPON2",
            "SELECT_WEAPON3",
            "SELECT_WEAPON4",
            "SELECT_WEAPON5",
            "SELECT_WEAPON6",
            "SELECT_NEXT_WEAPON",
            "SELECT_PREV_WEAPON",
        ),
        time_limit_tics=4200,
        rule=SuccessRule.KILLS,
        kills=10,
        looks=True,
        combinations=(*_WALK_TURNING, ("MOVE_FORWARD", "SPEED"), ("MOVE_FORWARD", "ATTACK")),
    ),
    Scenario(
        name="defend_the_center",
        summary="Turn on the spot and shoot whoever comes close; ends in death. Solved with 15 kills.",
        instructions=("Do not let the monsters reach you.", "Shoot every monster that comes close."),
        buttons=_AIM,
        rule=SuccessRule.KILLS,
        kills=15,
    ),
    Scenario(
        name="defend_the_line",
        summary="Shoot monsters that come back stronger each time; ends in death. Solved with 15 kills.",
        instructions=("Hold the line against the monsters.", "Shoot the monsters before they kill you."),
        buttons=_AIM,
        rule=SuccessRule.KILLS,
        kills=15,
    ),
    Scenario(
        name="find",
        summary="Walk to the object that the instruction names, past walls; another one is failure.",
        instructions=sentences(tuple(KINDS)),
        buttons=_WALK,
        time_limit_tics=400,
        rule=SuccessRule.TARGET,
        shipped=False,
        combinations=_WALK_TURNING,
        needs=(("rgb",), ("instruction", "speech")),
        color_is_label=True,
    ),
    Scenario(
        name="health_gathering",
        summary="The floor is acid: keep finding medikits; ends in death. Solved if alive at the limit.",
        instructions=("Collect medikits and stay alive.", "Find the medikits before the acid kills you."),
        buttons=_WALK,
        rule=SuccessRule.SURVIVAL,
        combinations=_WALK_TURNING,
    ),
    Scenario(
        name="health_gathering_supreme",
        summary="As health_gathering, in a maze with poison in blue vials. Solved if alive at the limit.",
        instructions=(
            "Collect medikits and avoid the vials.",
            "Find medikits in the maze, and leave the poison.",
        ),
        buttons=_WALK,
        rule=SuccessRule.SURVIVAL,
        combinations=_WALK_TURNING,
    ),
    Scenario(
        name="my_way_home",
        summary="Find the green armour in a maze of rooms, from a random place; ends there.",
        instructions=("Find the green armour.", "Search the rooms for the armour and take it."),
        buttons=("TURN_LEFT", "TURN_RIGHT", "MOVE_FORWARD", "MOVE_LEFT", "MOVE_RIGHT"),
        rule=SuccessRule.EXIT,
        combinations=_WALK_TURNING,
    ),
    Scenario(
        name="predict_position",
        summary="One rocket, which flies slowly: aim where the running monster will be; ends after the shot.",
        instructions=(
            "Hit the running monster with your only rocket.",
            "Aim ahead of the monster and fire once.",
        ),
        buttons=_AIM,
        time_limit_tics=300,
        rule=SuccessRule.KILLS,
        kills=1,
    ),
    Scenario(
        name="rocket_basic",
        summary="As basic, with a rocket launcher and without automatic aim.",
        instructions=_KILL_SENTENCES,
        buttons=_SHOOT,
        time_limit_tics=300,
        rule=SuccessRule.EXIT,
    ),
    Scenario(
        name="simpler_basic",
        summary="As basic, in a plainer room.",
        instructions=_KILL_SENTENCES,
        buttons=_SHOOT,
        time_limit_tics=300,
        rule=SuccessRule.EXIT,
    ),
    Scenario(
        name="take_cover",
        summary="Dodge ever more fireballs, unarmed; ends in death. Solved if alive at the limit.",
        instructions=("Dodge the fireballs.", "Step aside and stay alive."),
        buttons=("MOVE_LEFT", "MOVE_RIGHT"),
        rule=SuccessRule.SURVIVAL,
    ),
)

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _ALL}
"""Every scenario by name."""
