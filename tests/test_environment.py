"""The environment is pinned, complete and the same for pip and conda."""

import importlib.util
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
REQUIREMENTS = (ROOT / "envs/requirements.txt").read_text(encoding="utf-8")
CONDA = (ROOT / "envs/fedpapers.yaml").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

LINES = [line for line in REQUIREMENTS.splitlines() if not line.startswith("#")]
PINS = {canonicalize_name(pin.name): pin for pin in map(Requirement, LINES)}


@pytest.fixture(scope="module")
def lock():
    spec = importlib.util.spec_from_file_location("lock", ROOT / "envs/lock.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def direct(lock) -> list[Requirement]:
    return lock.asked_for(PYPROJECT)


def test_every_line_is_one_exact_pin():
    assert len(PINS) == len(LINES)
    assert [pin for pin in LINES if not re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*( ; .+)?", pin)] == []
    assert list(PINS) == sorted(PINS)


def test_direct_dependencies_are_pinned_in_versions_that_fit(direct):
    for wanted in direct:
        pin = PINS[canonicalize_name(wanted.name)]
        assert pin.marker is None, pin
        assert wanted.specifier.contains(str(pin.specifier).removeprefix("==")), f"{pin} is not {wanted}"


def test_whatever_the_dependencies_need_is_pinned(lock, direct):
    here = next((where for where in lock.PLATFORMS if Marker(where).evaluate()), None)
    if here is None or "Linux" not in here:
        pytest.skip("only a Linux environment has all packages of the lock file")
    pinned = {name for name, pin in PINS.items() if pin.marker is None or pin.marker.evaluate()}
    assert pinned == lock.needed(direct)[here]


def test_running_environment_has_the_pinned_versions(direct):
    names = {canonicalize_name(wanted.name) for wanted in direct}
    differing = {name: version(name) for name in names if version(name) not in PINS[name].specifier}
    assert differing == {}, "not as in envs/requirements.txt: run `make`"


def test_cuda_wheels_are_for_linux_only():
    cuda = [pin for name, pin in PINS.items() if re.match("nvidia|cuda|triton", name)]
    assert cuda
    for pin in cuda:
        assert pin.marker is not None, pin
        assert pin.marker.evaluate({"platform_system": "Linux", "platform_machine": "x86_64"})
        assert not pin.marker.evaluate({"platform_system": "Darwin", "platform_machine": "arm64"})


def test_conda_file_is_the_same():
    conda = yaml.safe_load(CONDA)
    assert conda["channels"] == ["conda-forge", "nodefaults"]
    python, pip, section = conda["dependencies"]
    assert python == "python >=3.11,<3.14"
    assert pip == "pip"
    assert section == {"pip": LINES}


@pytest.mark.parametrize("text", [REQUIREMENTS, CONDA], ids=["pip", "conda"])
def test_no_package_index_is_named(text):
    assert not re.search(r"://|--|\s-[if]\s|@", text)
