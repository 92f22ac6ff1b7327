"""Environment and policy together: what was perceived, done and earned; `embodied` collects tensors."""
