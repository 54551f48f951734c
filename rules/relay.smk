"""MultFAug's radio over many random layouts (`papers.multfaug.layouts`): nothing of it trains.

results/multfaug/{latency,arrivals,sample_privacy}.csv  one row a point of a curve: mean, error, step from the point before
results/multfaug/payload.csv                            one row a compression rate and form of a sample
results/multfaug/layout.yaml                            the layout on the map, for `fedpapers relay`
results/multfaug/tables/{hops,payload,relay_verdicts}.{csv,md,tex,html}
results/multfaug/figures/{latency,arrivals,sample_privacy,layout}.{png,pdf}
"""


rule relay:
    input:
        multiext("results/multfaug/tables/hops", ".csv", ".md", ".tex", ".html"),
        multiext("results/multfaug/tables/payload", ".csv", ".md", ".tex", ".html"),
        multiext(
            "results/multfaug/tables/relay_verdicts", ".csv", ".md", ".tex", ".html"
        ),
        multiext("results/multfaug/figures/latency", ".png", ".pdf"),
        multiext("results/multfaug/figures/arrivals", ".png", ".pdf"),
        multiext("results/multfaug/figures/sample_privacy", ".png", ".pdf"),
        multiext("results/multfaug/figures/layout", ".png", ".pdf"),


rule study_latency:
    output:
        "results/multfaug/latency.csv",
    log:
        "results/logs/multfaug/study_latency.log",
    benchmark:
        "results/benchmarks/multfaug/study_latency.tsv"
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        study=plan.relay.latency_study,
        code=fingerprint("scripts/study_latency.py"),
    message:
        "Sending seeds over random layouts: latency"
    script:
        "../scripts/study_latency.py"


rule study_arrivals:
    input:
        unpack(plan.relay.travelling_data),
    output:
        "results/multfaug/arrivals.csv",
    log:
        "results/logs/multfaug/study_arrivals.log",
    benchmark:
        "results/benchmarks/multfaug/study_arrivals.tsv"
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        study=plan.relay.arrival_study,
        code=fingerprint("scripts/study_arrivals.py"),
    message:
        "Sending seeds over random layouts: what arrives by a deadline"
    script:
        "../scripts/study_arrivals.py"


rule study_sample_privacy:
    input:
        unpack(plan.relay.travelling_data),
    output:
        "results/multfaug/sample_privacy.csv",
    log:
        "results/logs/multfaug/study_sample_privacy.log",
    benchmark:
        "results/benchmarks/multfaug/study_sample_privacy.tsv"
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        study=plan.relay.sample_study,
        code=fingerprint("scripts/study_sample_privacy.py"),
    message:
        "Measuring the privacy of the samples that arrive"
    script:
        "../scripts/study_sample_privacy.py"


rule study_payload:
    input:
        unpack(plan.relay.travelling_data),
    output:
        "results/multfaug/payload.csv",
    log:
        "results/logs/multfaug/study_payload.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=plan.relay.payload_study,
        code=fingerprint("scripts/study_payload.py"),
    message:
        "Counting the bits of compressed samples"
    script:
        "../scripts/study_payload.py"


rule tabulate_hops:
    input:
        latency="results/multfaug/latency.csv",
        arrivals="results/multfaug/arrivals.csv",
    output:
        csv="results/multfaug/tables/hops.csv",
        tex="results/multfaug/tables/hops.tex",
        md="results/multfaug/tables/hops.md",
        html=report(
            "results/multfaug/tables/hops.html",
            caption="../report/hops.rst",
            category="MultFAug",
            labels={"result": "latency and arrivals", "kind": "table"},
        ),
    log:
        "results/logs/multfaug/tabulate_hops.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=plan.relay.arrival_study,
        code=fingerprint("scripts/tabulate_hops.py"),
    message:
        "Tabulating latency and arrivals over hops"
    script:
        "../scripts/tabulate_hops.py"


rule tabulate_payload:
    input:
        "results/multfaug/payload.csv",
    output:
        csv="results/multfaug/tables/payload.csv",
        tex="results/multfaug/tables/payload.tex",
        md="results/multfaug/tables/payload.md",
        html=report(
            "results/multfaug/tables/payload.html",
            caption="../report/payload.rst",
            category="MultFAug",
            labels={"result": "bits of a sample", "kind": "table"},
        ),
    log:
        "results/logs/multfaug/tabulate_payload.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=fingerprint("scripts/tabulate_payload.py"),
    message:
        "Tabulating the bits of compressed samples"
    script:
        "../scripts/tabulate_payload.py"


rule tabulate_relay_verdicts:
    input:
        latency="results/multfaug/latency.csv",
        arrivals="results/multfaug/arrivals.csv",
        sample_privacy="results/multfaug/sample_privacy.csv",
        payload="results/multfaug/payload.csv",
    output:
        csv="results/multfaug/tables/relay_verdicts.csv",
        tex="results/multfaug/tables/relay_verdicts.tex",
        md="results/multfaug/tables/relay_verdicts.md",
        html=report(
            "results/multfaug/tables/relay_verdicts.html",
            caption="../report/relay_verdicts.rst",
            category="MultFAug",
            labels={"result": "verdicts on the radio", "kind": "table"},
        ),
    log:
        "results/logs/multfaug/tabulate_relay_verdicts.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=plan.relay.arrival_study,
        code=fingerprint("scripts/tabulate_relay_verdicts.py"),
    message:
        "Deciding what MultFAug claims about its radio"
    script:
        "../scripts/tabulate_relay_verdicts.py"


rule plot_latency:
    input:
        "results/multfaug/latency.csv",
    output:
        pdf="results/multfaug/figures/latency.pdf",
        png=report(
            "results/multfaug/figures/latency.png",
            caption="../report/latency.rst",
            category="MultFAug",
            labels={"result": "latency", "kind": "figure"},
        ),
    log:
        "results/logs/multfaug/plot_latency.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=plan.relay.latency_study,
        code=fingerprint("scripts/plot_latency.py"),
    message:
        "Drawing latency over compression, hops and dummy labels"
    script:
        "../scripts/plot_latency.py"


rule plot_arrivals:
    input:
        "results/multfaug/arrivals.csv",
    output:
        pdf="results/multfaug/figures/arrivals.pdf",
        png=report(
            "results/multfaug/figures/arrivals.png",
            caption="../report/arrivals.rst",
            category="MultFAug",
            labels={"result": "label privacy and seeds", "kind": "figure"},
        ),
    log:
        "results/logs/multfaug/plot_arrivals.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=plan.relay.arrival_study,
        code=fingerprint("scripts/plot_arrivals.py"),
    message:
        "Drawing label privacy and arrivals over hops"
    script:
        "../scripts/plot_arrivals.py"


rule plot_sample_privacy:
    input:
        "results/multfaug/sample_privacy.csv",
    output:
        pdf="results/multfaug/figures/sample_privacy.pdf",
        png=report(
            "results/multfaug/figures/sample_privacy.png",
            caption="../report/sample_privacy.rst",
            category="MultFAug",
            labels={"result": "sample privacy", "kind": "figure"},
        ),
    log:
        "results/logs/multfaug/plot_sample_privacy.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=plan.relay.sample_study,
        code=fingerprint("scripts/plot_sample_privacy.py"),
    message:
        "Drawing sample privacy over compression"
    script:
        "../scripts/plot_sample_privacy.py"


rule map_layout:
    output:
        layout="results/multfaug/layout.yaml",
        pdf="results/multfaug/figures/layout.pdf",
        png=report(
            "results/multfaug/figures/layout.png",
            caption="../report/layout.rst",
            category="MultFAug",
            labels={"result": "map of a layout", "kind": "figure"},
        ),
    log:
        "results/logs/multfaug/map_layout.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        layout=plan.relay.mapped_layout,
        code=fingerprint("scripts/map_layout.py"),
    message:
        "Drawing the map of a layout"
    script:
        "../scripts/map_layout.py"
