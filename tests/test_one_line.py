"""Mistakes that are not in the configuration: each ends in one line, whichever command meets it."""

import subprocess
from pathlib import Path

import pandas as pd
import pytest

from fedpapers.errors import InputError
from fedpapers.experiment.environment import torch_device
from fedpapers.files import read_yaml
from fedpapers.groups import Groups
from fedpapers.reporting.tables import write_table

TRAIN = ("--folder", "a", "--last", "1", "--data", "b", "--partition", "c")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 2026-02-31", "day is out of range"),
        ("[" * 3000 + "]" * 3000, "nest"),
        ("? [a]\n: 1", "a key is a list or a mapping"),
        ("a: \x07", "characters are not allowed"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("a: 1\na: 2", "stands here twice"),
        ("a: &x [*x, *y]", "undefined alias"),
    ],
)
def test_malformed_yaml(tmp_path, text, words):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"file\.yaml") as error:
        read_yaml(path)
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["data", "prepare", "--spec", "{half", "--output", "x"], "--spec: "),
        (["data", "prepare", "--spec", '{"kind": "mnist"}', "--output", "x"], "--spec: mnist.source: "),
        (["data", "partition", "--recipe", "[]", "--data", "x", "--output", "y"], "--recipe: "),
        (["train", "--run", '{"algorithm": "fed"}', *TRAIN], "--run: "),
        (["train", "--run", "{}", *TRAIN, "--threads", "0"], "--threads"),
    ],
)
def test_malformed_options(arguments, words, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    status, _, complaint = command(*arguments)
    assert status == 2 and complaint.startswith("error: ") and complaint.count("\n") == 1
    assert words in complaint and not list(tmp_path.iterdir())


def test_unknown_device():
    with pytest.raises(InputError, match="device is 'gpu'; expected auto, cpu or cuda"):
        torch_device("gpu")


def test_names_that_no_file_can_hold():
    with pytest.raises(InputError, match="NUL"):
        Groups({"A": ("a\0b", "c")})


def test_a_pipe_among_data_files_is_not_waited_for(tmp_path, command):
    subprocess.run(["mkfifo", tmp_path / "train-images-idx3-ubyte", tmp_path / "all_data_0.json"], check=True)
    status, _, complaint = command("data", "inspect", tmp_path)
    assert status == 2 and "nothing known in it" in complaint


def test_cells_are_escaped_in_every_form(tmp_path):
    odd = r"a|b & 5 % of $x_1$ {y} \z ~ # ^ <i>"
    files = {kind: str(tmp_path / f"table.{kind}") for kind in ("csv", "md", "tex", "html")}
    write_table(pd.DataFrame([{"S | σ": odd + "\nnext"}]), files, "made <here>")
    csv, md, tex, html = (Path(file).read_text() for file in files.values())
    assert pd.read_csv(files["csv"]).iloc[0, 0] == odd + "\nnext" and "made" not in csv
    assert md.endswith("|\n\n*made <here>*\n") and tex.endswith("\n% made <here>\n") and "made &lt;here&gt;" in html
    assert md.count("\n") == 5 and r"a\|b" in md
    assert r"a|b \& 5 \% of \$x\_1\$ \{y\} \textbackslash{}z \~{} \# \^{} <i> next" in tex
    assert "&lt;i&gt;" in html
