"""Data sets and their partitions over clients.

results/data/{dataset}/about.json                     a prepared data set; its arrays lie beside
results/partitions/{partition}/partition.safetensors  client -> samples, training and test
results/partitions/{partition}/histogram.csv          samples by client, split and label
"""


rule prepare_data:
    input:
        plan.dataset_input,
    output:
        about="results/data/{dataset}/about.json",
        images="results/data/{dataset}/images.npy",
        labels="results/data/{dataset}/labels.npy",
    log:
        "results/logs/data/{dataset}.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        spec=plan.dataset,
        code=plan.dataset_code,
    message:
        "Preparing the data set {wildcards.dataset}"
    shell:
        "python -m fedpapers data prepare --spec {params.spec:q}"
        " --output results/data/{wildcards.dataset} > {log:q} 2>&1"


rule prepare_partition:
    input:
        plan.partition_input,
    output:
        partition="results/partitions/{partition}/partition.safetensors",
        histogram="results/partitions/{partition}/histogram.csv",
        about="results/partitions/{partition}/about.json",
    log:
        "results/logs/partitions/{partition}.log",
    conda:
        "../envs/fedpapers.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        recipe=plan.partition,
        code=fingerprint("fedpapers.experiment.prepare_partition"),
    message:
        "Dividing the data over clients: {wildcards.partition}"
    shell:
        "python -m fedpapers data partition --recipe {params.recipe:q} --data $(dirname {input:q})"
        " --output results/partitions/{wildcards.partition} > {log:q} 2>&1"
