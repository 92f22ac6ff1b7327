import numpy as np
import torch

from sensorium.algorithms.state_groups import difference_hash, equal_states, near_embeddings, near_pictures


def same_partition(a, b):
    return bool(((a[:, None] == a) == (b[:, None] == b)).all())


def test_equal_keys_share_a_number():
    assert equal_states(["a", ("b", 1), "a"]).tolist() == [0, 1, 0]


def test_embeddings_are_joined_within_their_task_whatever_their_order():
    angles = torch.tensor([0.0, 0.1, 0.2, 1.5, 0.05])
    embeddings = torch.stack((angles.cos(), angles.sin()), 1) * torch.tensor([[1.0], [5], [1], [2], [1]])
    tasks = torch.tensor([0, 0, 0, 0, 1])
    groups = near_embeddings(embeddings, tasks, threshold=float(np.cos(0.11)))
    assert groups[0] == groups[1] == groups[2]  # 0 and 2 only through 1
    assert len(set(groups.tolist())) == 3
    order = torch.tensor([4, 2, 0, 3, 1])
    again = near_embeddings(embeddings[order], tasks[order], threshold=float(np.cos(0.11)))
    assert same_partition(again, groups[order])


def test_long_chains_are_followed_to_their_end():
    angles = torch.linspace(0, 3, 400)
    groups = near_embeddings(
        torch.stack((angles.cos(), angles.sin()), 1), torch.zeros(400, dtype=torch.long), threshold=0.9999
    )
    assert len(set(groups.tolist())) == 1


def test_noise_leaves_a_picture_in_its_group_and_another_scene_is_another_one():
    rng = np.random.default_rng(0)
    scenes = []
    for _ in range(3):
        coarse = rng.integers(0, 255, (6, 6, 3)).astype(np.float32)
        scenes.append(np.kron(coarse, np.ones((16, 16, 1), np.float32)))
    pictures = [
        np.clip(scene + rng.normal(0, 6, scene.shape), 0, 255).astype(np.uint8)
        for scene in scenes
        for _ in range(4)
    ]
    hashes = torch.stack([difference_hash(picture) for picture in pictures])
    assert hashes.shape == (12, 128)
    groups = near_pictures(hashes, torch.zeros(12, dtype=torch.long), max_bits=12)
    assert same_partition(groups, torch.arange(12) // 4)


def test_tiny_pictures_have_a_hash():
    assert difference_hash(np.zeros((3, 2, 3), np.uint8)).sum() == 0
