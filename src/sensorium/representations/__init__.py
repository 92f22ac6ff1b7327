"""Features become what is read: messages for a language model, aligned tensors for a policy network."""
