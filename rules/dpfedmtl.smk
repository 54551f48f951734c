"""Tables and figures of DPFedMTL (arXiv 2011.07179).

results/dpfedmtl/{runs,history,privacy}.csv           tidy tables, by the rules of results.smk
results/dpfedmtl/figures/contact_sheet_{dataset}.{png,pdf}
results/dpfedmtl/tables/tuning.{csv,md,tex,html}      the search of hyper-parameters, by the target `tune` only
"""


rule dpfedmtl:
    input:
        "results/dpfedmtl/runs.csv",
        "results/dpfedmtl/history.csv",
        "results/dpfedmtl/privacy.csv",
        plan.contact_sheets,


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


rule plot_contact_sheet:
    input:
        "results/data/{dataset}/about.json",
    output:
        pdf="results/dpfedmtl/figures/contact_sheet_{dataset}.pdf",
        png=report(
            "results/dpfedmtl/figures/contact_sheet_{dataset}.png",
            caption="../report/contact_sheet.rst",
            category="DPFedMTL",
            labels={"result": "samples of {dataset}", "kind": "figure"},
        ),
    log:
        "results/logs/dpfedmtl/plot_contact_sheet_{dataset}.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=fingerprint("scripts/plot_contact_sheet.py"),
    message:
        "Drawing samples of {wildcards.dataset}"
    script:
        "../scripts/plot_contact_sheet.py"
