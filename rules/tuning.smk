"""The search of hyper-parameters for DPFedMTL; by the target `tune` only.

results/dpfedmtl.tuning/{runs,history}.csv         tidy tables, by the rules of results.smk
results/dpfedmtl/tables/tuning.{csv,md,tex,html}
"""


rule tune:
    input:
        multiext("results/dpfedmtl/tables/tuning", ".csv", ".md", ".tex", ".html"),


rule tabulate_tuning:
    input:
        runs="results/dpfedmtl.tuning/runs.csv",
        history="results/dpfedmtl.tuning/history.csv",
    output:
        csv="results/dpfedmtl/tables/tuning.csv",
        tex="results/dpfedmtl/tables/tuning.tex",
        md="results/dpfedmtl/tables/tuning.md",
        html="results/dpfedmtl/tables/tuning.html",
    log:
        "results/logs/dpfedmtl/tabulate_tuning.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=fingerprint("scripts/tabulate_tuning.py"),
    message:
        "Tabulating the search of hyper-parameters"
    script:
        "../scripts/tabulate_tuning.py"
