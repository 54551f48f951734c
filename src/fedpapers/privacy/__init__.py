"""Mechanisms that release something about clients, and what they cost."""
