"""From actions to engine buttons, for all worlds at once: one matrix product, in the parent process."""

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ActionKind
from sensorium.envs.embodied.base import ActionSpec
from sensorium.envs.embodied.doom.scenarios import Scenario

TURN_DEGREES_PER_TIC = 3.515625
FORWARD_UNITS = 25.0
STRAFE_UNITS = 24.0
LOOK_DEGREES_PER_TIC = 3.515625
"""Value of a delta button that does what the on/off button does when held (measured to be equal in the
engine), so that -1 and 1 reach as far as the discrete actions."""

_MOVEMENT = frozenset(
    ("MOVE_LEFT", "MOVE_RIGHT", "MOVE_FORWARD", "MOVE_BACKWARD", "TURN_LEFT", "TURN_RIGHT", "SPEED", "STRAFE")
)


class ActionTable:
    """How the actions of one kind press the buttons of one scenario.

    - `discrete`: nothing, each button alone, and the scenario's combinations (`move_forward+turn_left`).
    - `continuous`: `turn` (1 is right), `look` (1 is up), `forward`, `strafe` (1 is right), as far as the
      scenario has such buttons; above 0, `attack` and `next_weapon` press the button. Where the scenario
      cannot walk backwards, a negative `forward` is standing still.
    - `hybrid`: an option that presses nothing (`move`) or one button that is not movement (`attack`), with
      the continuous movements beside it. A scenario without such buttons has `stand`, which ignores the
      movements, and `move`.

    Args:
        scenario: Which buttons there are.
        kind: What an action is made of.
    """

    def __init__(self, scenario: Scenario, kind: ActionKind) -> None:
        self._kind = kind
        self._axes = {} if kind is ActionKind.DISCRETE else _axes(scenario)
        triggers = _triggers(scenario) if kind is ActionKind.CONTINUOUS else {}
        presses = {} if kind is ActionKind.CONTINUOUS else _options(scenario, kind)
        binary = [b for b in scenario.buttons if any(b in p for p in [*presses.values(), *triggers.values()])]
        self.buttons: tuple[str, ...] = (*binary, *(button for button, _ in self._axes.values()))
        """The engine's buttons, in the order of the columns that `press` returns."""
        self._options = np.zeros((len(presses), len(self.buttons)))
        for row, names in enumerate(presses.values()):
            self._options[row, [self.buttons.index(name) for name in names]] = 1.0
        self._scales = np.zeros((len(self._axes), len(self.buttons)))
        for row, (button, scale) in enumerate(self._axes.values()):
            self._scales[row, self.buttons.index(button)] = scale
        self._triggers = [self.buttons.index(names[0]) for names in triggers.values()]
        walks_back = "MOVE_BACKWARD" in scenario.buttons
        self._lowest = np.array(
            [0.0 if axis == "forward" and not walks_back else -1.0 for axis in self._axes]
        )
        self._mask = np.ones((len(presses), len(self._axes)), np.bool_)
        if "stand" in presses:
            self._mask[0] = False
        self.spec = ActionSpec(
            kind=kind,
            option_names=tuple(presses),
            continuous_names=(*self._axes, *triggers),
            parameter_mask=self._mask if kind is ActionKind.HYBRID else None,
        )
        """What the actions look like from outside."""

    def press(
        self, discrete: NDArray[np.int64] | None, continuous: NDArray[np.float32] | None
    ) -> NDArray[np.float64]:
        """Return the (N, buttons) values that the engine holds during the step.

        Args:
            discrete: (N,) option index; None for `continuous`.
            continuous: (N, C) in [-1, 1]; None for `discrete`.
        """
        if continuous is None:
            pressed: NDArray[np.float64] = self._options[discrete]
            return pressed
        axes = np.maximum(continuous[:, : len(self._axes)].astype(np.float64), self._lowest)
        if discrete is not None:
            pressed = self._options[discrete] + (axes * self._mask[discrete]) @ self._scales
            return pressed
        pressed = axes @ self._scales
        pressed[:, self._triggers] = continuous[:, len(self._axes) :] > 0.0
        return pressed


def _axes(scenario: Scenario) -> dict[str, tuple[str, float]]:
    """Continuous movement -> (delta button, its value at 1)."""
    axes = {
        "turn": ("TURN_LEFT_RIGHT_DELTA", TURN_DEGREES_PER_TIC, "TURN_LEFT" in scenario.buttons),
        "look": ("LOOK_UP_DOWN_DELTA", LOOK_DEGREES_PER_TIC, scenario.looks),
        "forward": ("MOVE_FORWARD_BACKWARD_DELTA", FORWARD_UNITS, "MOVE_FORWARD" in scenario.buttons),
        "strafe": ("MOVE_LEFT_RIGHT_DELTA", STRAFE_UNITS, "MOVE_LEFT" in scenario.buttons),
    }
    return {name: (button, scale) for name, (button, scale, offered) in axes.items() if offered}


def _triggers(scenario: Scenario) -> dict[str, tuple[str, ...]]:
    """Continuous parameter -> the button that it presses above 0."""
    wanted = {"attack": ("ATTACK",), "next_weapon": ("SELECT_NEXT_WEAPON",)}
    return {name: buttons for name, buttons in wanted.items() if buttons[0] in scenario.buttons}


def _options(scenario: Scenario, kind: ActionKind) -> dict[str, tuple[str, ...]]:
    """Option name -> the buttons it presses."""
    if kind is ActionKind.DISCRETE:
        groups = [(button,) for button in scenario.buttons] + list(scenario.combinations)
        return {"noop": ()} | {"+".join(group).lower(): group for group in groups}
    pressed = [button for button in scenario.buttons if button not in _MOVEMENT]
    if not pressed:
        return {"stand": (), "move": ()}
    return {"move": ()} | {button.lower(): (button,) for button in pressed}
