"""The `sensorium` command."""
