"""Tables and figures, drawn from artefacts on disk."""
