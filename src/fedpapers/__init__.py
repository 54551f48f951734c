"""Private federated learning papers, regenerated, checked and extended."""
