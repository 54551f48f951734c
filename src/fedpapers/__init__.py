"""Private federated learning papers, regenerated, checked and extended."""

__version__ = "0.1.0"
