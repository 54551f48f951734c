"""A real Slurm of one node on this machine, for tests: `start` and `stop`. Needs root and Debian's
packages slurm-wlm and munge.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

CONF = Path("/etc/slurm/slurm.conf")
STATE = Path("/var/lib/slurm")
DAEMONS = {
    "slurmd": "/run/slurm/slurmd.pid",
    "slurmctld": "/run/slurm/slurmctld.pid",
    "munged": "/run/munge/munged.pid",
}

_CONF = """\
ClusterName=fedpapers
SlurmctldHost={host}(127.0.0.1)
SlurmUser=slurm
AuthType=auth/munge
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
MpiDefault=none
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
AccountingStorageType=accounting_storage/none
EnforcePartLimits=ALL
SchedulerParameters=batch_sched_delay=0,sched_interval=5,bf_interval=5
MinJobAge=3600
KillWait=5
{node} State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=30 DefMemPerCPU=500 State=UP
"""


def missing() -> str | None:
    """Why there can be no Slurm here; None where there can."""
    if os.geteuid() != 0:
        return "a Slurm for tests needs root"
    tools = [tool for tool in ("slurmctld", "slurmd", "sbatch", "munged") if _tool(tool) is None]
    if tools:
        return f"{', '.join(tools)} not installed (Debian: slurm-wlm, munge)"
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        return "snakemake-executor-plugin-slurm is not installed here"
    return "this machine has a Slurm of its own" if CONF.exists() else None


def start() -> None:
    """Start the daemons and wait until the node takes jobs.

    Raises:
        FileExistsError: There is a Slurm; nothing was changed.
        TimeoutError, subprocess.CalledProcessError: It does not start.
    """
    CONF.touch(exist_ok=False)
    try:
        _start()
    except BaseException:
        stop()
        raise


def _start() -> None:
    for user, folder in (
        ("munge", "/run/munge"),
        ("slurm", "/run/slurm"),
        ("slurm", STATE),
        ("slurm", STATE / "slurmctld"),
    ):
        subprocess.run(["install", "-d", "-o", user, "-g", user, "-m", "755", folder], check=True)
    described = subprocess.run([_tool("slurmd"), "-C"], capture_output=True, text=True, check=True).stdout.splitlines()[
        0
    ]
    node = re.sub(r"RealMemory=(\d+)", lambda found: f"RealMemory={int(found[1]) * 9 // 10}", described)
    host = socket.gethostname().partition(".")[0]
    CONF.write_text(_CONF.format(host=host, node=node.replace(" UpTime", " #UpTime").partition(" #")[0]))
    subprocess.run(["runuser", "-u", "munge", "--", _tool("munged")], check=True)
    _wait_for(lambda: subprocess.run(["munge", "-n"], stdin=subprocess.DEVNULL, capture_output=True).returncode == 0)
    subprocess.run([_tool("slurmctld")], check=True)
    subprocess.run([_tool("slurmd")], check=True)
    _wait_for(
        lambda: subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True).stdout.strip() == "idle"
    )


def stop() -> None:
    """Cancel what runs, stop the daemons, and leave no configuration: with one, every Snakemake would look for them."""
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(["scancel", "--user=root"], capture_output=True, timeout=30)
        for name, file in DAEMONS.items():
            pid = Path(file).read_text().strip() if Path(file).exists() else ""
            if pid and Path(f"/proc/{pid}/comm").exists() and Path(f"/proc/{pid}/comm").read_text().strip() == name:
                os.kill(int(pid), signal.SIGTERM)
                _wait_for(lambda pid=pid: not Path(f"/proc/{pid}").exists())
    finally:
        CONF.unlink(missing_ok=True)
        shutil.rmtree(STATE / "slurmctld", ignore_errors=True)


def _tool(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def _wait_for(condition, seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError("Slurm did not come up; see /var/log/slurm")
        time.sleep(0.2)


if __name__ == "__main__":
    {"start": start, "stop": stop}[sys.argv[1]]()
