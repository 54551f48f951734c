"""Training, cut into segments: each goes on from the state that the one before has left.

results/runs/{run}/round-{round}.safetensors  state after a round: shared and private parameters
results/runs/{run}/round-{round}.metrics.csv  evaluations since the state before
results/runs/{run}/round-{round}.clients.csv  each client's result at this round
results/runs/{run}/round-{round}.json         how it was made, the privacy ledger, checksums
"""


rule train:
    input:
        unpack(plan.training_input),
    output:
        state="results/runs/{run}/round-{round}.safetensors",
        metrics="results/runs/{run}/round-{round}.metrics.csv",
        clients="results/runs/{run}/round-{round}.clients.csv",
        record="results/runs/{run}/round-{round}.json",
    log:
        "results/logs/train/{run}/round-{round}.log",
    benchmark:
        "results/benchmarks/train/{run}/round-{round}.tsv"
    conda:
        "../envs/fedpapers.yaml"
    threads: plan.config.training.threads
    resources:
        mem_mb=3000,
        runtime=240,
        device=plan.config.training.device,
    params:
        run=plan.run,
        first=plan.first_round,
        code=fingerprint("fedpapers.experiment.train"),
    message:
        "Training {wildcards.run} up to round {wildcards.round}"
    shell:
        "python -m fedpapers train --run {params.run:q} --folder $(dirname {output.state:q})"
        " --first {params.first} --last $((10#{wildcards.round})) --data $(dirname {input.data:q})"
        " --partition {input.partition:q} --threads {threads} --device {resources.device}"
        " > {log:q} 2>&1"
