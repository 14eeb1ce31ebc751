"""Says, proves and keeps in step which versions go together."""
