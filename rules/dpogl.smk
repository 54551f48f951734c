"""Tables and figures of DP-OGL (arXiv 2503.04054).

results/dpogl/tables/{table}.{csv,md,tex,html}
results/dpogl/figures/{figure}.{png,pdf}
"""


rule dpogl:
    input:
        multiext("results/dpogl/tables/accuracy", ".csv", ".md", ".tex", ".html"),
        multiext("results/dpogl/figures/accuracy_by_epsilon", ".png", ".pdf"),
        multiext("results/dpogl/figures/accuracy_by_round", ".png", ".pdf"),
        multiext("results/dpogl/figures/partition", ".png", ".pdf"),
        plan.if_studied(rules.leakage.input),


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
        code=fingerprint("scripts/plot_partition.py"),
    message:
        "Drawing the partition of {wildcards.paper}"
    script:
        "../scripts/plot_partition.py"
