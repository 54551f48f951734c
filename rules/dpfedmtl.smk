"""Tables and figures of DPFedMTL (arXiv 2011.07179), from tidy tables.

results/{paper}/clients.csv     one row a data set: clients, samples, real or generated
results/{paper}/epsilons.csv    one row a setting, place of the noise and accountant; nothing is trained for it
results/{paper}/tradeoff.csv    one row a setting, curve and type I error
results/{paper}/tables/{clients,methods,noise,guarantees,claims}.{csv,md,tex,html}     Tables 1, 2, 3, P, verdicts
results/{paper}/figures/{tradeoff,convergence}.{png,pdf}                               Figures 3 and 4
results/dpfedmtl/figures/contact_sheet_{dataset}.{png,pdf}
"""


rule dpfedmtl:
    input:
        multiext("results/dpfedmtl/tables/clients", ".csv", ".md", ".tex", ".html"),
        multiext("results/dpfedmtl/tables/methods", ".csv", ".md", ".tex", ".html"),
        multiext("results/dpfedmtl/tables/noise", ".csv", ".md", ".tex", ".html"),
        multiext("results/dpfedmtl/tables/guarantees", ".csv", ".md", ".tex", ".html"),
        multiext("results/dpfedmtl/tables/claims", ".csv", ".md", ".tex", ".html"),
        multiext("results/dpfedmtl/figures/tradeoff", ".png", ".pdf"),
        multiext("results/dpfedmtl/figures/convergence", ".png", ".pdf"),
        "results/dpfedmtl/privacy.csv",
        plan.contact_sheets,


rule count_clients:
    input:
        plan.partition_tables,
    output:
        "results/{paper}/clients.csv",
    log:
        "results/logs/{paper}/count_clients.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        partitions=plan.partitions,
        code=fingerprint("scripts/count_clients.py"),
    message:
        "Counting clients and samples of {wildcards.paper}"
    script:
        "../scripts/count_clients.py"


rule certify:
    input:
        "results/{paper}/clients.csv",
    output:
        epsilons="results/{paper}/epsilons.csv",
        curves="results/{paper}/tradeoff.csv",
    log:
        "results/logs/{paper}/certify.log",
    benchmark:
        "results/benchmarks/{paper}/certify.tsv"
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        settings=plan.noise_settings,
        delta=plan.delta,
        code=fingerprint("scripts/certify.py"),
    message:
        "Certifying what {wildcards.paper} claims about privacy"
    script:
        "../scripts/certify.py"


rule tabulate_clients:
    input:
        "results/{paper}/clients.csv",
    output:
        csv="results/{paper}/tables/clients.csv",
        tex="results/{paper}/tables/clients.tex",
        md="results/{paper}/tables/clients.md",
        html=report(
            "results/{paper}/tables/clients.html",
            caption="../report/clients_table.rst",
            category="DPFedMTL",
            labels={"result": "data", "kind": "table"},
        ),
    log:
        "results/logs/{paper}/tabulate_clients.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=fingerprint("scripts/tabulate_clients.py"),
    message:
        "Tabulating clients and samples of {wildcards.paper}"
    script:
        "../scripts/tabulate_clients.py"


rule tabulate_methods:
    input:
        runs="results/{paper}/runs.csv",
        clients="results/{paper}/clients.csv",
    output:
        csv="results/{paper}/tables/methods.csv",
        tex="results/{paper}/tables/methods.tex",
        md="results/{paper}/tables/methods.md",
        html=report(
            "results/{paper}/tables/methods.html",
            caption="../report/methods_table.rst",
            category="DPFedMTL",
            labels={"result": "accuracy by method", "kind": "table"},
        ),
    log:
        "results/logs/{paper}/tabulate_methods.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.config.scale,
        code=fingerprint("scripts/tabulate_methods.py"),
    message:
        "Tabulating accuracy by method of {wildcards.paper}"
    script:
        "../scripts/tabulate_methods.py"


rule tabulate_noise:
    input:
        runs="results/{paper}/runs.csv",
        clients="results/{paper}/clients.csv",
    output:
        csv="results/{paper}/tables/noise.csv",
        tex="results/{paper}/tables/noise.tex",
        md="results/{paper}/tables/noise.md",
        html=report(
            "results/{paper}/tables/noise.html",
            caption="../report/noise_table.rst",
            category="DPFedMTL",
            labels={"result": "accuracy by noise", "kind": "table"},
        ),
    log:
        "results/logs/{paper}/tabulate_noise.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.config.scale,
        code=fingerprint("scripts/tabulate_noise.py"),
    message:
        "Tabulating accuracy by noise of {wildcards.paper}"
    script:
        "../scripts/tabulate_noise.py"


rule tabulate_guarantees:
    input:
        clients="results/{paper}/clients.csv",
        epsilons="results/{paper}/epsilons.csv",
    output:
        csv="results/{paper}/tables/guarantees.csv",
        tex="results/{paper}/tables/guarantees.tex",
        md="results/{paper}/tables/guarantees.md",
        html=report(
            "results/{paper}/tables/guarantees.html",
            caption="../report/guarantees_table.rst",
            category="DPFedMTL",
            labels={"result": "ε claimed and certified", "kind": "table"},
        ),
    log:
        "results/logs/{paper}/tabulate_guarantees.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        delta=plan.delta,
        code=fingerprint("scripts/tabulate_guarantees.py"),
    message:
        "Tabulating ε as claimed and as certified of {wildcards.paper}"
    script:
        "../scripts/tabulate_guarantees.py"


rule tabulate_claims:
    input:
        runs="results/{paper}/runs.csv",
        clients="results/{paper}/clients.csv",
        history="results/{paper}/history.csv",
        epsilons="results/{paper}/epsilons.csv",
    output:
        csv="results/{paper}/tables/claims.csv",
        tex="results/{paper}/tables/claims.tex",
        md="results/{paper}/tables/claims.md",
        html=report(
            "results/{paper}/tables/claims.html",
            caption="../report/claims_table.rst",
            category="DPFedMTL",
            labels={"result": "claims and verdicts", "kind": "table"},
        ),
    log:
        "results/logs/{paper}/tabulate_claims.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.config.scale,
        code=fingerprint("scripts/tabulate_claims.py"),
    message:
        "Judging the claims of {wildcards.paper}"
    script:
        "../scripts/tabulate_claims.py"


rule plot_tradeoff:
    input:
        clients="results/{paper}/clients.csv",
        curves="results/{paper}/tradeoff.csv",
    output:
        pdf="results/{paper}/figures/tradeoff.pdf",
        png=report(
            "results/{paper}/figures/tradeoff.png",
            caption="../report/tradeoff.rst",
            category="DPFedMTL",
            labels={"result": "trade-off curves", "kind": "figure"},
        ),
    log:
        "results/logs/{paper}/plot_tradeoff.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=fingerprint("scripts/plot_tradeoff.py"),
    message:
        "Drawing trade-off curves of {wildcards.paper}"
    script:
        "../scripts/plot_tradeoff.py"


rule plot_convergence:
    input:
        runs="results/{paper}/runs.csv",
        clients="results/{paper}/clients.csv",
        history="results/{paper}/history.csv",
    output:
        pdf="results/{paper}/figures/convergence.pdf",
        png=report(
            "results/{paper}/figures/convergence.png",
            caption="../report/convergence.rst",
            category="DPFedMTL",
            labels={"result": "accuracy against rounds", "kind": "figure"},
        ),
    log:
        "results/logs/{paper}/plot_convergence.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.config.scale,
        code=fingerprint("scripts/plot_convergence.py"),
    message:
        "Drawing accuracy against rounds of {wildcards.paper}"
    script:
        "../scripts/plot_convergence.py"


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
        title=plan.title,
        code=fingerprint("scripts/plot_contact_sheet.py"),
    message:
        "Drawing samples of {wildcards.dataset}"
    script:
        "../scripts/plot_contact_sheet.py"
