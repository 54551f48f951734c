"""From runs to tidy tables, one set for each paper.

results/{paper}/runs.csv        one row a run: its parameters, last accuracy, the best constant answer's
results/{paper}/history.csv     one row an evaluation of a run
results/{paper}/privacy.csv     one row a run and accountant: what its ledger costs
"""


rule collect_runs:
    input:
        metrics=plan.metrics,
        histograms=plan.histograms,
    output:
        runs="results/{paper}/runs.csv",
        history="results/{paper}/history.csv",
    log:
        "results/logs/{paper}/collect_runs.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        table=plan.table,
        code=fingerprint("scripts/collect_runs.py"),
    message:
        "Collecting the runs of {wildcards.paper}"
    script:
        "../scripts/collect_runs.py"


rule account:
    input:
        plan.final_states,
    output:
        "results/{paper}/privacy.csv",
    log:
        "results/logs/{paper}/account.log",
    benchmark:
        "results/benchmarks/{paper}/account.tsv"
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        table=plan.table,
        delta=plan.delta,
        accountants=plan.accountants,
        code=fingerprint("scripts/account.py"),
    message:
        "Accounting for the privacy of all runs of {wildcards.paper}"
    script:
        "../scripts/account.py"
