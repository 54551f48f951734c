"""Tables and figures of DP-OGL (arXiv 2503.04054).

results/dpogl/tables/{table}.{csv,md,tex,html}
results/dpogl/figures/{figure}.{png,pdf}
results/dpogl/leakage_of_runs.csv        one row a run: proven ε in and out of group
"""


rule dpogl:
    input:
        multiext("results/dpogl/tables/accuracy", ".csv", ".md", ".tex", ".html"),
        multiext("results/dpogl/figures/accuracy_by_epsilon", ".png", ".pdf"),
        multiext("results/dpogl/figures/accuracy_by_round", ".png", ".pdf"),
        multiext("results/dpogl/figures/partition", ".png", ".pdf"),
        multiext("results/dpogl/tables/leakage", ".csv", ".md", ".tex", ".html"),
        multiext("results/dpogl/figures/accuracy_by_leakage", ".png", ".pdf"),
        multiext("results/dpogl/figures/role_of_interval", ".png", ".pdf"),
        multiext("results/dpogl/tables/verdicts", ".csv", ".md", ".tex", ".html"),
        plan.leakage.if_studied(rules.leakage.input),


rule tabulate_accuracy:
    input:
        runs="results/{paper}/runs.csv",
        privacy="results/{paper}/privacy.csv",
    output:
        csv="results/{paper}/tables/accuracy.csv",
        tex="results/{paper}/tables/accuracy.tex",
        md="results/{paper}/tables/accuracy.md",
        html=report(
            "results/{paper}/tables/accuracy.html",
            caption="../report/accuracy.rst",
            category="DP-OGL",
            labels={"result": "accuracy and ε", "kind": "table"},
        ),
    log:
        "results/logs/{paper}/tabulate_accuracy.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        accountants=plan.accountants,
        scale=plan.config.scale,
        code=fingerprint("scripts/tabulate_accuracy.py"),
    message:
        "Tabulating accuracy and ε of {wildcards.paper}"
    script:
        "../scripts/tabulate_accuracy.py"


rule plot_accuracy_by_epsilon:
    input:
        runs="results/{paper}/runs.csv",
        privacy="results/{paper}/privacy.csv",
    output:
        pdf="results/{paper}/figures/accuracy_by_epsilon.pdf",
        png=report(
            "results/{paper}/figures/accuracy_by_epsilon.png",
            caption="../report/accuracy_by_epsilon.rst",
            category="DP-OGL",
            labels={"result": "accuracy against ε", "kind": "figure"},
        ),
    log:
        "results/logs/{paper}/plot_accuracy_by_epsilon.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        accountants=plan.accountants,
        scale=plan.config.scale,
        code=fingerprint("scripts/plot_accuracy_by_epsilon.py"),
    message:
        "Drawing accuracy against ε of {wildcards.paper}"
    script:
        "../scripts/plot_accuracy_by_epsilon.py"


rule plot_accuracy_by_round:
    input:
        runs="results/{paper}/runs.csv",
        history="results/{paper}/history.csv",
    output:
        pdf="results/{paper}/figures/accuracy_by_round.pdf",
        png=report(
            "results/{paper}/figures/accuracy_by_round.png",
            caption="../report/accuracy_by_round.rst",
            category="DP-OGL",
            labels={"result": "accuracy against rounds", "kind": "figure"},
        ),
    log:
        "results/logs/{paper}/plot_accuracy_by_round.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.config.scale,
        code=fingerprint("scripts/plot_accuracy_by_round.py"),
    message:
        "Drawing accuracy against rounds of {wildcards.paper}"
    script:
        "../scripts/plot_accuracy_by_round.py"


rule plot_partition:
    input:
        unpack(plan.first_partition),
    output:
        pdf="results/{paper}/figures/partition.pdf",
        png=report(
            "results/{paper}/figures/partition.png",
            caption="../report/partition.rst",
            category="DP-OGL",
            labels={"result": "who holds which labels", "kind": "figure"},
        ),
    log:
        "results/logs/{paper}/plot_partition.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        title=plan.title_of_first,
        code=fingerprint("scripts/plot_partition.py"),
    message:
        "Drawing the partition of {wildcards.paper}"
    script:
        "../scripts/plot_partition.py"


rule account_leakage:
    input:
        plan.final_states,
    output:
        "results/{paper}/leakage_of_runs.csv",
    log:
        "results/logs/{paper}/account_leakage.log",
    benchmark:
        "results/benchmarks/{paper}/account_leakage.tsv"
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        table=plan.table,
        delta=plan.delta,
        code=fingerprint("scripts/account_leakage.py"),
    message:
        "Bounding what each run leaks in and out of group"
    script:
        "../scripts/account_leakage.py"


rule tabulate_leakage:
    input:
        runs="results/dpogl/runs.csv",
        leakage="results/dpogl/leakage_of_runs.csv",
    output:
        csv="results/dpogl/tables/leakage.csv",
        tex="results/dpogl/tables/leakage.tex",
        md="results/dpogl/tables/leakage.md",
        html=report(
            "results/dpogl/tables/leakage.html",
            caption="../report/leakage_table.rst",
            category="DP-OGL",
            labels={"result": "accuracy and leakage", "kind": "table"},
        ),
    log:
        "results/logs/dpogl/tabulate_leakage.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.config.scale,
        code=fingerprint("scripts/tabulate_leakage.py"),
    message:
        "Tabulating accuracy and leakage in and out of group"
    script:
        "../scripts/tabulate_leakage.py"


rule plot_accuracy_by_leakage:
    input:
        runs="results/dpogl/runs.csv",
        leakage="results/dpogl/leakage_of_runs.csv",
    output:
        pdf="results/dpogl/figures/accuracy_by_leakage.pdf",
        png=report(
            "results/dpogl/figures/accuracy_by_leakage.png",
            caption="../report/accuracy_by_leakage.rst",
            category="DP-OGL",
            labels={"result": "accuracy against leakage", "kind": "figure"},
        ),
    log:
        "results/logs/dpogl/plot_accuracy_by_leakage.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.config.scale,
        code=fingerprint("scripts/plot_accuracy_by_leakage.py"),
    message:
        "Drawing accuracy against leakage out of group"
    script:
        "../scripts/plot_accuracy_by_leakage.py"


rule plot_role_of_interval:
    input:
        runs="results/dpogl/runs.csv",
        leakage="results/dpogl/leakage_of_runs.csv",
    output:
        pdf="results/dpogl/figures/role_of_interval.pdf",
        png=report(
            "results/dpogl/figures/role_of_interval.png",
            caption="../report/role_of_interval.rst",
            category="DP-OGL",
            labels={"result": "the role of S", "kind": "figure"},
        ),
    log:
        "results/logs/dpogl/plot_role_of_interval.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.config.scale,
        code=fingerprint("scripts/plot_role_of_interval.py"),
    message:
        "Drawing the role of the interval"
    script:
        "../scripts/plot_role_of_interval.py"


rule tabulate_verdicts:
    input:
        unpack(plan.leakage.verdict_input),
    output:
        csv="results/dpogl/tables/verdicts.csv",
        tex="results/dpogl/tables/verdicts.tex",
        md="results/dpogl/tables/verdicts.md",
        html=report(
            "results/dpogl/tables/verdicts.html",
            caption="../report/dpogl_verdicts.rst",
            category="DP-OGL",
            labels={"result": "verdicts on claims", "kind": "table"},
        ),
    log:
        "results/logs/dpogl/tabulate_verdicts.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        interval=plan.leakage.interval,
        scale=plan.config.scale,
        code=fingerprint("scripts/tabulate_verdicts.py"),
    message:
        "Deciding on the claims of DP-OGL"
    script:
        "../scripts/tabulate_verdicts.py"
