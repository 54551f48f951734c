"""MultFAug's learning (arXiv 1907.06426, `papers.multfaug.learning`): seeds, generator, devices before and after.

results/multfaug/devices/{devices}/devices.safetensors      who has which samples; histogram.csv beside it
results/multfaug/seeds/{gan}/seeds.safetensors              the images that arrived; about.json beside it
results/multfaug/gans/{gan}/step-{step}.safetensors         generator and discriminator after a step
results/multfaug/gans/{gan}/quality.json                    the generator judged; generated.safetensors beside it
results/multfaug/classifiers/{classifier}.json              how well a device's network does
results/multfaug/{cells,quality}.csv                        one row a cell
results/multfaug/tables/{table}.{csv,md,tex,html}
results/multfaug/figures/{figure}.{png,pdf}
"""


rule augmentation:
    input:
        multiext("results/multfaug/tables/augmentation", ".csv", ".md", ".tex", ".html"),
        multiext(
            "results/multfaug/tables/augmentation_verdicts",
            ".csv",
            ".md",
            ".tex",
            ".html",
        ),
        multiext("results/multfaug/figures/devices", ".png", ".pdf"),
        multiext("results/multfaug/figures/seeds_and_digits", ".png", ".pdf"),
        multiext("results/multfaug/figures/quality", ".png", ".pdf"),
        multiext("results/multfaug/figures/accuracy_by_hops", ".png", ".pdf"),


rule multfaug:
    input:
        plan.relay.if_laid_out(rules.relay.input),
        plan.augmentation.if_learnt(rules.augmentation.input),


rule prepare_devices:
    input:
        plan.augmentation.dataset_about,
    output:
        devices="results/multfaug/devices/{devices}/devices.safetensors",
        histogram="results/multfaug/devices/{devices}/histogram.csv",
        about="results/multfaug/devices/{devices}/about.json",
    log:
        "results/logs/multfaug/devices/{devices}.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        recipe=plan.augmentation.devices,
        code=fingerprint("fedpapers.experiment.prepare_devices"),
    message:
        "Dealing the data to devices: {wildcards.devices}"
    shell:
        "python -m fedpapers augment devices --recipe {params.recipe:q} --data $(dirname {input:q})"
        " --output $(dirname {output.devices:q}) > {log:q} 2>&1"


rule compress_seeds:
    input:
        unpack(plan.augmentation.seeds_input),
    output:
        seeds="results/multfaug/seeds/{gan}/seeds.safetensors",
        about="results/multfaug/seeds/{gan}/about.json",
    log:
        "results/logs/multfaug/seeds/{gan}.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        spec=plan.augmentation.gan,
        code=fingerprint("fedpapers.experiment.compress_seeds"),
    message:
        "Compressing the seeds that arrived: {wildcards.gan}"
    shell:
        "python -m fedpapers augment seeds --spec {params.spec:q} --data $(dirname {input.data:q})"
        " --devices {input.devices:q} --output $(dirname {output.seeds:q}) > {log:q} 2>&1"


rule train_gan:
    input:
        unpack(plan.augmentation.gan_input),
    output:
        state="results/multfaug/gans/{gan}/step-{step}.safetensors",
        record="results/multfaug/gans/{gan}/step-{step}.json",
    log:
        "results/logs/multfaug/gans/{gan}/step-{step}.log",
    benchmark:
        "results/benchmarks/multfaug/gans/{gan}/step-{step}.tsv"
    conda:
        "../envs/fedpapers.yaml"
    threads: plan.config.training.threads
    resources:
        mem_mb=2000,
        runtime=240,
        device=plan.config.training.device,
    params:
        spec=plan.augmentation.gan,
        first=plan.augmentation.first_step,
        code=fingerprint("fedpapers.experiment.train_gan"),
    message:
        "Training the generator {wildcards.gan} up to step {wildcards.step}"
    shell:
        "python -m fedpapers augment train --spec {params.spec:q} --seeds {input.seeds:q} --state {output.state:q}"
        " --first {params.first} --last $((10#{wildcards.step})) --threads {threads}"
        " --device {resources.device} > {log:q} 2>&1"


rule train_classifier:
    input:
        unpack(plan.augmentation.classifier_input),
    output:
        "results/multfaug/classifiers/{classifier}.json",
    log:
        "results/logs/multfaug/classifiers/{classifier}.log",
    benchmark:
        "results/benchmarks/multfaug/classifiers/{classifier}.tsv"
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        spec=plan.augmentation.classifier,
        generator=plan.augmentation.generator_option,
        code=fingerprint("fedpapers.experiment.train_classifier"),
    message:
        "Training a device's network: {wildcards.classifier}"
    shell:
        "python -m fedpapers augment classify --spec {params.spec:q} --data $(dirname {input.data:q})"
        " --devices {input.devices:q} {params.generator} --output {output:q} --threads {threads} > {log:q} 2>&1"


rule train_judge:
    input:
        unpack(plan.augmentation.judge_input),
    output:
        "results/multfaug/judge.safetensors",
    log:
        "results/logs/multfaug/train_judge.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        training=plan.augmentation.judge_training,
        code=fingerprint("fedpapers.experiment.train_judge"),
    message:
        "Training the judge of generated digits"
    shell:
        "python -m fedpapers augment train-judge --training {params.training:q} --data $(dirname {input.data:q})"
        " --devices {input.devices:q} --output {output:q} > {log:q} 2>&1"


rule judge_generator:
    input:
        unpack(plan.augmentation.judged_input),
    output:
        quality="results/multfaug/gans/{gan}/quality.json",
        generated="results/multfaug/gans/{gan}/generated.safetensors",
    log:
        "results/logs/multfaug/gans/{gan}/judge.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        spec=plan.augmentation.gan,
        steps=plan.augmentation.steps,
        code=fingerprint("fedpapers.experiment.judge"),
    message:
        "Judging the generator {wildcards.gan}"
    shell:
        "python -m fedpapers augment judge --spec {params.spec:q} --steps {params.steps} --data $(dirname {input.data:q})"
        " --devices {input.devices:q} --seeds {input.seeds:q} --generator {input.generator:q}"
        " --judge {input.judge:q} --output {output.quality:q} > {log:q} 2>&1"


rule collect_cells:
    input:
        classifiers=plan.augmentation.cell_input,
        quality=plan.augmentation.quality_input,
    output:
        cells="results/multfaug/cells.csv",
        quality="results/multfaug/quality.csv",
    log:
        "results/logs/multfaug/collect_cells.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        cells=plan.augmentation.cell_rows,
        compared=plan.augmentation.compared_rows,
        code=fingerprint("scripts/collect_cells.py"),
    message:
        "Collecting the cells of MultFAug's learning"
    script:
        "../scripts/collect_cells.py"


rule tabulate_augmentation:
    input:
        "results/multfaug/cells.csv",
    output:
        csv="results/multfaug/tables/augmentation.csv",
        tex="results/multfaug/tables/augmentation.tex",
        md="results/multfaug/tables/augmentation.md",
        html=report(
            "results/multfaug/tables/augmentation.html",
            caption="../report/augmentation.rst",
            category="MultFAug",
            labels={
                "result": "accuracy before and after augmentation",
                "kind": "table",
            },
        ),
    log:
        "results/logs/multfaug/tabulate_augmentation.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.augmentation.scale,
        code=fingerprint("scripts/tabulate_augmentation.py"),
    message:
        "Tabulating accuracy before and after augmentation"
    script:
        "../scripts/tabulate_augmentation.py"


rule tabulate_augmentation_verdicts:
    input:
        cells="results/multfaug/cells.csv",
        quality="results/multfaug/quality.csv",
    output:
        csv="results/multfaug/tables/augmentation_verdicts.csv",
        tex="results/multfaug/tables/augmentation_verdicts.tex",
        md="results/multfaug/tables/augmentation_verdicts.md",
        html=report(
            "results/multfaug/tables/augmentation_verdicts.html",
            caption="../report/augmentation_verdicts.rst",
            category="MultFAug",
            labels={"result": "verdicts on what is learnt", "kind": "table"},
        ),
    log:
        "results/logs/multfaug/tabulate_augmentation_verdicts.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.augmentation.scale,
        code=fingerprint("scripts/tabulate_augmentation_verdicts.py"),
    message:
        "Deciding on the paper's claims about learning"
    script:
        "../scripts/tabulate_augmentation_verdicts.py"


rule plot_devices:
    input:
        unpack(plan.augmentation.first_devices),
    output:
        pdf="results/multfaug/figures/devices.pdf",
        png=report(
            "results/multfaug/figures/devices.png",
            caption="../report/devices.rst",
            category="MultFAug",
            labels={"result": "who holds which labels", "kind": "figure"},
        ),
    log:
        "results/logs/multfaug/plot_devices.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        title=plan.augmentation.title,
        code=fingerprint("scripts/plot_devices.py"),
    message:
        "Drawing the devices' samples"
    script:
        "../scripts/plot_devices.py"


rule plot_seeds_and_digits:
    input:
        unpack(plan.augmentation.sheet_input),
    output:
        pdf="results/multfaug/figures/seeds_and_digits.pdf",
        png=report(
            "results/multfaug/figures/seeds_and_digits.png",
            caption="../report/seeds_and_digits.rst",
            category="MultFAug",
            labels={"result": "seeds and generated digits", "kind": "figure"},
        ),
    log:
        "results/logs/multfaug/plot_seeds_and_digits.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.augmentation.scale,
        cells=plan.augmentation.sheet_rows,
        code=fingerprint("scripts/plot_seeds_and_digits.py"),
    message:
        "Drawing seeds and generated digits"
    script:
        "../scripts/plot_seeds_and_digits.py"


rule plot_quality:
    input:
        "results/multfaug/quality.csv",
    output:
        pdf="results/multfaug/figures/quality.pdf",
        png=report(
            "results/multfaug/figures/quality.png",
            caption="../report/quality.rst",
            category="MultFAug",
            labels={"result": "F1 and sample privacy against ρ", "kind": "figure"},
        ),
    log:
        "results/logs/multfaug/plot_quality.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.augmentation.scale,
        code=fingerprint("scripts/plot_quality.py"),
    message:
        "Drawing F1 and sample privacy against ρ"
    script:
        "../scripts/plot_quality.py"


rule plot_accuracy_by_hops:
    input:
        "results/multfaug/cells.csv",
    output:
        pdf="results/multfaug/figures/accuracy_by_hops.pdf",
        png=report(
            "results/multfaug/figures/accuracy_by_hops.png",
            caption="../report/accuracy_by_hops.rst",
            category="MultFAug",
            labels={"result": "accuracy before and after against M", "kind": "figure"},
        ),
    log:
        "results/logs/multfaug/plot_accuracy_by_hops.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=plan.augmentation.scale,
        code=fingerprint("scripts/plot_accuracy_by_hops.py"),
    message:
        "Drawing accuracy before and after augmentation against hops"
    script:
        "../scripts/plot_accuracy_by_hops.py"
