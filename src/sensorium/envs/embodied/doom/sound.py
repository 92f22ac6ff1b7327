"""The engine's stereo samples of one step to waveform or log-mel, with everything reckoned in advance.

The values are those of `features.audio.log_mel`; here the sizes never change, which makes it several times
faster on a path that runs in every step of every world.
"""

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.compiled import compiled
from sensorium.envs.embodied.doom.settings import GameSettings
from sensorium.features.audio import MEL_FLOOR, mel_filterbank


class StepSound:
    """Turns the samples of `frame_skip + 1` tics into the reading of one step.

    The tic before the step is there because the window of the first frame begins in it.

    Args:
        settings: Rates and sizes.
    """

    def __init__(self, settings: GameSettings) -> None:
        hop, frames, n_fft = settings.samples_per_tic, settings.frame_skip, settings.n_fft
        self._waveform_wanted = settings.waveform
        self._hop = hop
        hann = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(n_fft) / n_fft)
        self._weights = (hann / (0.5 * hann.sum()) / 32768.0).astype(np.float32)
        self._filters = mel_filterbank(settings.sample_rate_hz, n_fft, settings.n_mels)
        self._first, self._last = _extents(self._filters)
        self._windowed = np.empty((2, frames, n_fft), np.float32)
        self._spectrum = np.empty((2, frames, n_fft // 2 + 1), np.complex64)

    def read(self, samples: NDArray[np.int16], out: NDArray[np.float32]) -> None:
        """Write the reading of one step.

        Args:
            samples: (samples of frame_skip + 1 tics, 2) from the engine, left first.
            out: (2, samples of frame_skip tics) in [-1, 1], or (2, frame_skip, n_mels) log-mel.
        """
        if self._waveform_wanted:
            _scale(samples[self._hop :], out)
            return
        _cut_windows(samples, self._hop, self._weights, self._windowed)
        np.fft.rfft(self._windowed, axis=-1, out=self._spectrum)  # type: ignore[arg-type] # complex64 works
        _log_mel(self._spectrum, self._filters, self._first, self._last, np.float32(MEL_FLOOR), out)


def _extents(filters: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First bin of each filter that is not zero, and the one after its last."""
    used = filters > 0
    first = used.argmax(axis=1)
    return first, filters.shape[1] - used[:, ::-1].argmax(axis=1)


@compiled
def _scale(samples: NDArray[np.int16], out: NDArray[np.float32]) -> None:
    for ear in range(2):
        for i in range(samples.shape[0]):
            out[ear, i] = samples[i, ear] * np.float32(1.0 / 32768.0)


@compiled
def _cut_windows(
    samples: NDArray[np.int16], hop: int, weights: NDArray[np.float32], windowed: NDArray[np.float32]
) -> None:
    n_fft = weights.shape[0]
    for ear in range(2):
        for frame in range(windowed.shape[1]):
            start = (frame + 2) * hop - n_fft
            for i in range(n_fft):
                windowed[ear, frame, i] = samples[start + i, ear] * weights[i]


@compiled
def _log_mel(
    spectrum: NDArray[np.complex64],
    filters: NDArray[np.float32],
    first: NDArray[np.intp],
    last: NDArray[np.intp],
    floor: np.float32,
    out: NDArray[np.float32],
) -> None:
    power = np.empty(spectrum.shape[2], np.float32)
    for ear in range(2):
        for frame in range(spectrum.shape[1]):
            for k in range(power.shape[0]):
                bin_ = spectrum[ear, frame, k]
                power[k] = bin_.real * bin_.real + bin_.imag * bin_.imag
            for mel in range(filters.shape[0]):
                total = np.float32(0.0)
                for k in range(first[mel], last[mel]):
                    total += power[k] * filters[mel, k]
                out[ear, frame, mel] = np.log(max(total, floor))
