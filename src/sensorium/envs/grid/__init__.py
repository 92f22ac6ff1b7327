"""Grid worlds of MiniGrid and BabyAI, told in few words and acted on with a word."""
