"""Tables and figures of DPFedMTL (arXiv 2011.07179).

results/dpfedmtl/{runs,history,privacy}.csv           tidy tables, by the rules of results.smk
results/dpfedmtl/figures/contact_sheet_{dataset}.{png,pdf}
"""


rule dpfedmtl:
    input:
        "results/dpfedmtl/runs.csv",
        "results/dpfedmtl/history.csv",
        "results/dpfedmtl/privacy.csv",
        plan.contact_sheets,


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
