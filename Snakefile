"""The tables and figures of three papers on private federated learning: `snakemake --cores all`."""

import shlex
import sys

from snakemake.utils import min_version

min_version("9.27")

# Snakemake does not quote the interpreter of scripts (its issue 2645); a checkout may lie in a path with spaces.
sys.executable = shlex.quote(sys.executable)

# The package of this checkout, for this process and for every job's, also where it is not installed.
sys.path.insert(0, f"{workflow.basedir}/src")

from fedpapers.experiment.fingerprint import fingerprint
from fedpapers.experiment.plan import Plan, configured_by, hand_on

hand_on(workflow)


configfile: "config.yaml"


report: "report/workflow.rst"


plan = Plan.or_exit(config, configured_by(workflow))


onstart:
    # Snakemake's limit on jobs a second costs one more timer, which wakes the scheduler each second, for each job that
    # has ended (its issue 3744): a tenth of a `make`. A workstation needs no limit, so none is kept there.
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


wildcard_constraints:
    round=r"\d{6}",
    step=r"\d{6}",
    paper="|".join(plan.tables),


localrules:
    all,
    dpogl,
    dpfedmtl,
    multfaug,
    leakage,
    augmentation,
    relay,
    tune,


include: "rules/data.smk"
include: "rules/training.smk"
include: "rules/results.smk"
include: "rules/leakage.smk"
include: "rules/dpogl.smk"
include: "rules/dpfedmtl.smk"
include: "rules/tuning.smk"
include: "rules/relay.smk"
include: "rules/multfaug.smk"


rule all:
    default_target: True
    input:
        [getattr(rules, paper).input for paper in plan.config.papers.made],
