"""MultFAug: seed samples that travel over several devices to a server (arXiv 1907.06426)."""
