"""Names that classic Gymnasium environments have for their actions and observations."""

ACTION_NAMES: dict[str, tuple[str, ...]] = {
    "CartPole": ("push_left", "push_right"),
    "MountainCar": ("accelerate_left", "do_nothing", "accelerate_right"),
    "Acrobot": ("torque_minus_1", "no_torque", "torque_plus_1"),
    "LunarLander": ("do_nothing", "fire_left_engine", "fire_main_engine", "fire_right_engine"),
    "FrozenLake": ("left", "down", "right", "up"),
    "FrozenLake8x8": ("left", "down", "right", "up"),
    "CliffWalking": ("up", "right", "down", "left"),
    "Taxi": ("south", "north", "east", "west", "pick_up", "drop_off"),
    "Blackjack": ("stick", "hit"),
}
"""Name of the environment without its version -> names of the actions."""

VALUE_NAMES: dict[str, tuple[str, ...]] = {
    "CartPole": ("cart_position", "cart_velocity", "pole_angle_rad", "pole_tip_velocity"),
    "MountainCar": ("position", "velocity"),
    "MountainCarContinuous": ("position", "velocity"),
    "Pendulum": ("cos_angle", "sin_angle", "angular_velocity"),
    "Acrobot": ("cos_angle_1", "sin_angle_1", "cos_angle_2", "sin_angle_2", "velocity_1", "velocity_2"),
    "Blackjack": ("sum_of_your_cards", "dealer_shows", "usable_ace"),
    "FrozenLake": ("cell",),
    "FrozenLake8x8": ("cell",),
    "CliffWalking": ("cell",),
}
"""Name of the environment without its version -> names of the numbers of an observation."""


def base_name(env_id: str) -> str:
    """The id of an environment without namespace, module and version.

    Example:
        >>> base_name("phys2d/CartPole-v1")
        'CartPole'
    """
    name = env_id.rpartition(":")[2].rpartition("/")[2]
    head, _, version = name.rpartition("-v")
    return head if head and version.isdigit() else name
