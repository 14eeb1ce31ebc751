"""What a compile yields: the artifact's layout and its packing."""
