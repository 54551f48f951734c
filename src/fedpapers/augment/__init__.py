"""MultFAug's learning: a generator trained on the seeds that arrived, and devices that fill a label with its images."""
