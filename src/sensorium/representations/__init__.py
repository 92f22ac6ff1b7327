"""Features become what a policy reads: aligned tensors."""

from sensorium.representations.tensors import SensorInput, TableRows, TensorObservation, TensorRepresenter

__all__ = ["SensorInput", "TableRows", "TensorObservation", "TensorRepresenter"]
