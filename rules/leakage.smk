"""Who leaks how much to whom in overlapping groups: bounds, no training (`papers.dpogl.leakage`).

results/dpogl/leakage_pairs.csv       one row a structure, algorithm, S, ordered pair of workers and bound
results/dpogl/leakage_over_time.csv   one row a number of epochs, distance and bound, and an exact reference
results/dpogl/leakage_audit.csv       one row an algorithm, distance and bound, and an audit from below
results/dpogl/tables/structures.{csv,md,tex,html}
results/dpogl/figures/{structures,leakage_over_time,leakage_over_distance,leakage_of_pairs,leakage_audit}.{png,pdf}
"""


rule leakage:
    input:
        multiext("results/dpogl/tables/structures", ".csv", ".md", ".tex", ".html"),
        multiext("results/dpogl/figures/structures", ".png", ".pdf"),
        multiext("results/dpogl/figures/leakage_over_time", ".png", ".pdf"),
        multiext("results/dpogl/figures/leakage_over_distance", ".png", ".pdf"),
        multiext("results/dpogl/figures/leakage_of_pairs", ".png", ".pdf"),
        plan.leakage.if_audited(
            multiext("results/dpogl/figures/leakage_audit", ".png", ".pdf")
        ),


rule study_leakage:
    output:
        pairs="results/dpogl/leakage_pairs.csv",
        over_time="results/dpogl/leakage_over_time.csv",
    log:
        "results/logs/dpogl/study_leakage.log",
    benchmark:
        "results/benchmarks/dpogl/study_leakage.tsv"
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        study=plan.leakage.study,
        code=fingerprint("scripts/study_leakage.py"),
    message:
        "Bounding who leaks how much to whom"
    script:
        "../scripts/study_leakage.py"


rule audit_leakage:
    output:
        "results/dpogl/leakage_audit.csv",
    log:
        "results/logs/dpogl/audit_leakage.log",
    benchmark:
        "results/benchmarks/dpogl/audit_leakage.tsv"
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        audit=plan.leakage.audit,
        code=fingerprint("scripts/audit_leakage.py"),
    message:
        "Auditing what workers leak, from below"
    script:
        "../scripts/audit_leakage.py"


rule tabulate_structures:
    output:
        csv="results/dpogl/tables/structures.csv",
        tex="results/dpogl/tables/structures.tex",
        md="results/dpogl/tables/structures.md",
        html=report(
            "results/dpogl/tables/structures.html",
            caption="../report/structures_table.rst",
            category="DP-OGL",
            labels={"result": "group structures", "kind": "table"},
        ),
    log:
        "results/logs/dpogl/tabulate_structures.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        structures=plan.leakage.structures,
        code=fingerprint("scripts/tabulate_structures.py"),
    message:
        "Tabulating the group structures"
    script:
        "../scripts/tabulate_structures.py"


rule plot_structures:
    output:
        pdf="results/dpogl/figures/structures.pdf",
        png=report(
            "results/dpogl/figures/structures.png",
            caption="../report/structures.rst",
            category="DP-OGL",
            labels={"result": "group structures", "kind": "figure"},
        ),
    log:
        "results/logs/dpogl/plot_structures.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        structures=plan.leakage.structures,
        code=fingerprint("scripts/plot_structures.py"),
    message:
        "Drawing the group structures"
    script:
        "../scripts/plot_structures.py"


rule plot_leakage_over_time:
    input:
        "results/dpogl/leakage_over_time.csv",
    output:
        pdf="results/dpogl/figures/leakage_over_time.pdf",
        png=report(
            "results/dpogl/figures/leakage_over_time.png",
            caption="../report/leakage_over_time.rst",
            category="DP-OGL",
            labels={"result": "leakage over time", "kind": "figure"},
        ),
    log:
        "results/logs/dpogl/plot_leakage_over_time.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=plan.leakage.shown,
        code=fingerprint("scripts/plot_leakage_over_time.py"),
    message:
        "Drawing leakage over time"
    script:
        "../scripts/plot_leakage_over_time.py"


rule plot_leakage_over_distance:
    input:
        "results/dpogl/leakage_pairs.csv",
    output:
        pdf="results/dpogl/figures/leakage_over_distance.pdf",
        png=report(
            "results/dpogl/figures/leakage_over_distance.png",
            caption="../report/leakage_over_distance.rst",
            category="DP-OGL",
            labels={"result": "leakage over distance", "kind": "figure"},
        ),
    log:
        "results/logs/dpogl/plot_leakage_over_distance.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=plan.leakage.shown,
        code=fingerprint("scripts/plot_leakage_over_distance.py"),
    message:
        "Drawing leakage over distance"
    script:
        "../scripts/plot_leakage_over_distance.py"


rule plot_leakage_of_pairs:
    input:
        "results/dpogl/leakage_pairs.csv",
    output:
        pdf="results/dpogl/figures/leakage_of_pairs.pdf",
        png=report(
            "results/dpogl/figures/leakage_of_pairs.png",
            caption="../report/leakage_of_pairs.rst",
            category="DP-OGL",
            labels={"result": "leakage from worker to worker", "kind": "figure"},
        ),
    log:
        "results/logs/dpogl/plot_leakage_of_pairs.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=plan.leakage.shown,
        code=fingerprint("scripts/plot_leakage_of_pairs.py"),
    message:
        "Drawing leakage from each worker to each other"
    script:
        "../scripts/plot_leakage_of_pairs.py"


rule plot_leakage_audit:
    input:
        "results/dpogl/leakage_audit.csv",
    output:
        pdf="results/dpogl/figures/leakage_audit.pdf",
        png=report(
            "results/dpogl/figures/leakage_audit.png",
            caption="../report/leakage_audit.rst",
            category="DP-OGL",
            labels={"result": "audit under the bounds", "kind": "figure"},
        ),
    log:
        "results/logs/dpogl/plot_leakage_audit.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        audit=plan.leakage.audit,
        code=fingerprint("scripts/plot_leakage_audit.py"),
    message:
        "Drawing the audit under the bounds"
    script:
        "../scripts/plot_leakage_audit.py"
