"""The engine beside its peers: `make bench`; docs/performance.md."""
