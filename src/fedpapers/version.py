"""The version of this package, kept out of the code so that raising it makes no result stale."""

from importlib.metadata import PackageNotFoundError, version


def package_version() -> str:
    """The version as installed; where only the source is on the path it is not known."""
    try:
        return version("fedpapers")
    except PackageNotFoundError:
        return "not installed"
