"""The engine: rounds of local training over groups of clients."""
