"""The images of the seeds that arrived, as the server has them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from fedpapers.data.devices import Devices
from fedpapers.errors import InputError
from fedpapers.files import canonical_json, parse_json, read_sealed, replacing, sealed, sha256, write_json
from fedpapers.randomness import Purpose, generator
from fedpapers.relay.compression import DENSE_BITS, csr_bits, mean_sample_bits, sparsify
from fedpapers.relay.layouts import LABELS
from fedpapers.relay.seeds import Seeds

FORMAT = 1
FILE = "seeds.safetensors"

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]


def compress_seeds(
    images: Images, devices: Devices, numbers: Sequence[int], cap: int, compression: float, seed: int
) -> tuple[Images, Labels]:
    """The compressed images of some seeds, and their labels.

    A device chooses and compresses its seeds once: the same number is the same image at every M and τ.

    Args:
        images: Of the whole data set, shape [n, 28, 28].
        devices: Who has which.
        numbers: The seeds, S of them (`fedpapers.relay.seeds`).
        cap: b.
        compression: ρ.
        seed: Of the pixels that are set to 0.

    Returns:
        uint8, shape [S, 28, 28], and int64, shape [S].
    """
    device, label, place = Seeds(cap).origin(np.asarray(numbers, dtype=np.int64))
    chosen = np.empty((len(numbers), *images.shape[1:]), dtype=np.uint8)
    for one in np.unique(device * LABELS + label).tolist():
        own = np.flatnonzero(device * LABELS + label == one)
        samples = devices.of_label(*divmod(one, LABELS))[:cap]
        draw = generator(seed, Purpose.COMPRESSION, group=one // LABELS, client=one % LABELS)
        chosen[own] = sparsify(images[samples], compression, draw)[place[own]]
    return chosen, label


def write_seeds(folder: Path, images: Images, labels: Labels, compression: float, about: dict[str, Any]) -> None:
    """Write `seeds.safetensors` (images, labels) and `about.json`, which says how many there are and their size."""
    with replacing(folder / FILE) as path:
        head = canonical_json({"format": FORMAT, "compression": compression})
        path.write_bytes(save({"images": images, "labels": labels}, metadata={"fedpapers": head}))
    nonzeros = (images != 0).sum(axis=(1, 2))
    sizes = {
        "samples": len(labels),
        "labels": np.bincount(labels, minlength=LABELS).tolist(),
        "csr_bits": int(csr_bits(nonzeros).sum()),
        "csr_bits_assumed": mean_sample_bits(compression) * len(labels),
        "dense_bits": DENSE_BITS * len(labels),
    }
    checksum = {"sha256": sha256(folder / FILE)}
    write_json(folder / "about.json", sealed({**about, "compression": compression, **sizes, **checksum}))


def read_seeds(path: Path) -> tuple[Images, Labels]:
    """Read what `write_seeds` wrote.

    Raises:
        InputError: The file is missing, damaged, or not the one that `about.json` speaks of.
    """
    try:
        about = read_sealed(path.with_name("about.json"))
        if about["sha256"] != sha256(path):
            raise InputError(f"{path}: not the file that was written; delete it to make it again")
        with safe_open(path, framework="np") as file:
            head = parse_json((file.metadata() or {}).get("fedpapers", "{}"))
            if head.get("format") != FORMAT:
                raise InputError(f"{path}: format {head.get('format')!r}; expected {FORMAT}; delete it")
            return file.get_tensor("images"), file.get_tensor("labels")
    except InputError:
        raise
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: missing or damaged ({error}); delete it to make it again") from None
