"""Questions about charts of real data, documents and scenes, answered from the picture."""
