"""Data sets, their on-disk form, and their partition over clients."""
