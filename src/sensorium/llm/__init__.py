"""What is asked of language models: messages, token counts, answers."""
