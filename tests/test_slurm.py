"""The workflow on a real Slurm of one node: a job that fails, a job that is cancelled, a run to its end."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from checkout import PARTS, ROOT
from one_node_slurm import missing, start, stop

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.skipif(missing() is not None, reason=f"no Slurm: {missing()}"),
]

CONFIGURATION = ("--replace-workflow-config", "--configfile", "own.yaml")
PROFILE = ("--profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "5", "--latency-wait", "5")


@pytest.fixture(scope="module", autouse=True)
def slurm():
    try:
        start()
    except (FileExistsError, TimeoutError, subprocess.CalledProcessError) as error:
        pytest.skip(f"Slurm does not start here: {error}")
    yield
    stop()


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one run of two segments, in a configuration that replaces the default one."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("Snakefile", "config.yaml"):
        shutil.copy2(ROOT / file, tmp_path)
    configure(tmp_path, rounds=4)
    return tmp_path


def configure(folder, rounds, **dataset):
    config = yaml.safe_load((ROOT / "configs/tiny.yaml").read_text())
    dpogl = config["papers"]["dpogl"]
    config["papers"] = {"dpogl": dpogl}
    dpogl["runs"] = {"plain": {"algorithm": "fedavg"}}
    dpogl["common"] |= {"rounds": rounds, "evaluate_every": rounds // 2}
    config["training"]["segment_rounds"] = rounds // 2
    config["datasets"]["mnist"] |= dataset
    (folder / "own.yaml").write_text(yaml.safe_dump(config))


def started(folder, *arguments):
    """Snakemake on the cluster, up to the tidy table of runs."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "snakemake", "results/dpogl/runs.csv", *PROFILE, *arguments, *CONFIGURATION]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment, **streams)


def ended(process):
    """Exit status and all that was printed; a hanging one is interrupted, so that its jobs are cancelled."""
    try:
        printed = process.communicate(timeout=420)[0]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            printed = process.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            printed = process.communicate()[0]
        queue = subprocess.run(["squeue", "-t", "all"], capture_output=True, text=True).stdout
        pytest.fail(f"Snakemake hangs; it printed\n{printed}\nand Slurm has\n{queue}")
    return process.returncode, printed


def jobs(state):
    """Ids of Slurm's jobs in a state, by the rule that their comment names."""
    listed = subprocess.run(["squeue", "-h", "-t", state, "-o", "%A %k"], capture_output=True, text=True, check=True)
    return {line.split()[1]: line.split()[0] for line in listed.stdout.splitlines() if len(line.split()) > 1}


def test_a_failing_job_is_named_with_the_last_lines_of_its_log(checkout):
    configure(checkout, rounds=4, source="folder", path="nowhere")
    status, printed = ended(started(checkout, "--retries", "0"))
    assert status == 1
    assert "Error in rule prepare_data" in printed and "FAILED" in printed
    assert "results/logs/data/mnist_folder.log" in printed
    assert "error: nowhere: no such folder; expected one with the idx files" in printed


def test_a_cancelled_job_is_made_again_by_the_next_start_which_ends(checkout):
    configure(checkout, rounds=20_000)
    process = started(checkout, "--retries", "0")
    until = time.monotonic() + 300
    while not (running := {rule: job for rule, job in jobs("RUNNING").items() if rule.startswith("rule_train")}):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(1)
    subprocess.run(["scancel", *running.values()], check=True)
    status, printed = ended(process)
    assert status == 1 and "Error in rule train" in printed and "CANCELLED" in printed
    assert not list(checkout.glob("results/runs/*/round-*.safetensors"))

    configure(checkout, rounds=4)
    status, printed = ended(started(checkout))
    assert status == 0, printed
    assert len(list(checkout.glob("results/runs/*/round-*.safetensors"))) == 2
    assert (checkout / "results/dpogl/runs.csv").is_file()
    rules = {name.split("_wildcards_")[0] for name in jobs("COMPLETED")}
    assert {"rule_prepare_data", "rule_train", "rule_collect_runs"} <= rules
