"""Whether what lies under `results/` belongs to the present code and configuration.

Snakemake says which files there are to be, which rule makes each, and which it would make again. What it does not
see, as it goes by times, comes from checksums: of the records of training, the data's own, and the stamps of tables
and figures.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from fedpapers.errors import InputError
from fedpapers.experiment.checks import BESIDE_DATA, code_of_record, damage, other_input, other_versions
from fedpapers.experiment.fingerprint import fingerprint
from fedpapers.experiment.plan import Plan
from fedpapers.experiment.run_files import RESULTS
from fedpapers.experiment.spec import Run
from fedpapers.files import parse_json, sha256
from fedpapers.stamps import digest, read_stamp, stamp_file, versions

_CAUSES = {
    "updated input files": "what it is made from is newer",
    "set of input files changed": "it is to be made from other files",
    "params changed": "its settings or its code changed",
}
_FOREIGN = "keep it if it is your own or of another configuration: fedpapers verify FILE"
_UPSTREAM = "what it is made from is to be made again"
_OTHER_CODE = "it was made by other code"
_NO_NOTE = "Snakemake has no note of making it"
_NOTHING = "nothing of the plan is there"
_NOTES = ".snakemake/metadata"
_HANDFUL = 5  # findings of a kind that are named one by one
_NO_RESULTS = {RESULTS / "logs", RESULTS / "benchmarks", RESULTS / "bench", RESULTS / "README.md"}
_BESIDE = {"runs": ("run.json", "progress.json"), "data": BESIDE_DATA}


@dataclass(frozen=True)
class Artefact:
    """A file that a rule makes.

    Attributes:
        path: Where it lies, or should.
        rule: What makes it.
        noted: Whether Snakemake has a note of making it.
        status: Snakemake's word for its state.
        pending: Whether Snakemake would make it again.
    """

    path: Path
    rule: str
    noted: bool
    status: str
    pending: bool

    @property
    def stem(self) -> str:
        """Its name without endings, which files that are made together have in common."""
        return str(self.path.with_name(self.path.name.partition(".")[0]))

    @property
    def of_script(self) -> bool:
        """Whether a script makes it, which leaves a stamp, and not a command, which leaves a record."""
        return Path(f"scripts/{self.rule}.py").is_file()


@dataclass(frozen=True)
class Finding:
    """What is wrong with an artefact.

    Attributes:
        artefact: The file or folder; files that differ in their ending alone stand together.
        problem: `missing`, `stale`, `damaged`, `foreign` (no rule makes it) or `unknown` (nothing says how it came).
        why: In words.
        rule: What makes it; None where no rule does.
        mend: The command that mends it; for what is foreign, advice in words.
    """

    artefact: str
    problem: str
    why: str
    rule: str | None
    mend: str

    @property
    def count(self) -> int:
        """How many files, or folders, stand together in its name."""
        _, together, endings = self.artefact.partition(".{")
        return 1 + endings.count(",") if together else 1

    @property
    def folder(self) -> str:
        """The folder of `results/` in which it lies, however deep."""
        return str(Path(*Path(self.artefact).parent.parts[:2]))

    def __str__(self) -> str:
        rule = f" ({self.rule})" if self.rule else ""
        return f"{self.problem}: {self.artefact}{rule}: {self.why}; {self.mend}"


@dataclass(frozen=True)
class _Verdict:
    """What is wrong with a file, whether Snakemake makes it again by itself, and what else has to go if not."""

    problem: str
    why: str
    other: tuple[str, ...] = ()
    remade: bool = False


def verify(plan: Plan, config_files: Sequence[Path]) -> dict[str, Any]:
    """The report of `fedpapers verify`: how many files were `checked`, `findings`, and `notes` of no consequence.

    `configuration` names the files with which they were compared.

    Args:
        plan: Of the configuration.
        config_files: Its files; none for the checkout's own.

    Raises:
        InputError: This is no checkout, or Snakemake cannot plan.
    """
    artefacts = _planned(plan, config_files)
    there = [artefact for artefact in artefacts if artefact.path.is_file()]
    findings = [*_findings(artefacts, plan, config_files), *_foreign({artefact.path for artefact in artefacts})]
    findings += _other_descriptions(plan)
    return {
        "configuration": plan.config.source,
        "checked": len(there),
        "findings": [asdict(one) for one in findings],
        "notes": _other_versions(there),
    }


def format_verification(report: dict[str, Any]) -> str:
    """The configuration, a line for each finding or folder of many, one for all that follow, notes, and the sum."""
    found = [Finding(**one) for one in report["findings"]]
    causes = [one for one in found if one.why != _UPSTREAM]
    follow = sum(one.count for one in found if one.why == _UPSTREAM)
    lines = _lines(causes) + ([f"stale: {follow} more: {_UPSTREAM}"] if follow else [])
    more = ["--json names each, and what mends it"] if follow or len(lines) < len(found) else []
    head = f"compared with {report['configuration']}"
    return "\n".join([head, *lines, *more, *report["notes"], _sum(found, report["checked"])])


def _lines(found: Sequence[Finding]) -> list[str]:
    """A line for each finding; of more than a handful of a kind, one for those of a folder that have the same cause."""
    many = Counter(one.problem for one in found)
    groups: dict[tuple[str, ...], list[Finding]] = defaultdict(list)
    for one in sorted(found, key=lambda one: one.problem):
        alone = one.problem == "damaged" or many[one.problem] <= _HANDFUL
        groups[one.problem, one.artefact if alone else one.folder, one.why].append(one)
    return [_together(group) if group[1:] else str(group[0]) for group in groups.values()]


def _together(group: Sequence[Finding]) -> str:
    first, count = group[0], sum(one.count for one in group)
    what, mend = ("folders or files", f"; {first.mend}") if first.problem == "foreign" else ("files", "")
    return f"{first.problem}: {count} {what} in {first.folder}: {first.why}{mend}"


def _sum(found: Sequence[Finding], checked: int) -> str:
    """How many files there are, and how many of them, and beside them, are not as they should be."""
    if not found:
        return f"{checked} files checked: all belong to the present code and configuration"
    counts: Counter[str] = Counter()
    for one in found:
        counts[one.problem] += 0 if one.why == _NOTHING else one.count
    there, beside = (
        ", ".join(f"{counts[problem]} {problem}" for problem in problems if counts[problem])
        for problems in (("damaged", "stale", "unknown"), ("missing", "foreign"))
    )
    verdict = there or ("all as they should be" if checked else _NOTHING)
    return f"{checked} files checked: {verdict}{f'; besides {beside}' if beside else ''}"


def _planned(plan: Plan, config_files: Sequence[Path]) -> list[Artefact]:
    """All files that the workflow makes; those of a search of hyper-parameters where some of it lies there."""
    if not Path("Snakefile").is_file():
        raise InputError("Snakefile: no such file; expected to be called in a checkout of fedpapers")
    searched = any((RESULTS / search).exists() for search in plan.config.papers.searches)
    targets = ["all", "tune"] if searched else ["all"]
    command = [sys.executable, "-m", "snakemake", "--summary", *targets, *_configured(config_files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or "no message").splitlines()[-1].removeprefix("error: ")
        raise InputError(f"snakemake --summary: {reason}; expected a plan; `snakemake -n` says more")
    head, *rows = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    return [_artefact(dict(zip(head, row, strict=True))) for row in rows]


def _artefact(row: dict[str, str]) -> Artefact:
    return Artefact(
        path=Path(row["output_file"]),
        rule=row["rule"],
        noted=row["log-file(s)"] != "-",
        status=row["status"],
        pending=row["plan"] == "update pending",
    )


def _configured(config_files: Sequence[Path]) -> list[str]:
    return ["--replace-workflow-config", "--configfile", *map(str, config_files)] if config_files else []


def _making(config_files: Sequence[Path], *targets: str) -> str:
    """The command that makes some files, which stand first: `--configfile` takes all that follows it."""
    return shlex.join(["snakemake", *targets, "--cores", "all", *_configured(config_files)])


def _findings(artefacts: Sequence[Artefact], plan: Plan, config_files: Sequence[Path]) -> Iterator[Finding]:
    """What is wrong with planned files."""
    if not any(artefact.path.is_file() for artefact in artefacts):
        yield Finding(str(RESULTS), "missing", _NOTHING, None, _making(config_files))
        return
    judged = [(artefact, verdict) for artefact in artefacts if (verdict := _judge(artefact, plan))]
    if not any(artefact.noted for artefact in artefacts):
        judged = [one for one in judged if one[1].why != _NO_NOTE]
        why = "Snakemake's notes are not here, so that settings cannot be compared"
        yield Finding(_NOTES, "unknown", why, None, "bring it along with the results")
    for (stem, rule, verdict), group in groupby(judged, lambda one: (one[0].stem, one[0].rule, one[1])):
        paths = [str(artefact.path) for artefact, _ in group]
        name = f"{stem}.{{{','.join(path.removeprefix(f'{stem}.') for path in paths)}}}" if paths[1:] else paths[0]
        remove = "" if verdict.remade else f"rm -f {shlex.join([*paths, *verdict.other])} && "
        # Of its own accord Snakemake makes no file again that is missing between others that are there.
        mend = remove + _making(config_files, *verdict.other, paths[0], "all")
        yield Finding(name, verdict.problem, verdict.why, rule, mend)


def _judge(artefact: Artefact, plan: Plan) -> _Verdict | None:
    """What is wrong with a planned file; None where it is as it should be."""
    path = artefact.path
    if not path.is_file():
        return _Verdict("missing", "it is in the plan and not there", remade=True)
    stamp = read_stamp(path) if artefact.of_script else None
    if stamp and stamp["outputs"][str(path)] != sha256(path):
        return _Verdict("damaged", "it is not what its rule wrote")
    if not artefact.of_script and (why := damage(artefact.rule, path, plan)):
        return _Verdict("damaged", why)
    if artefact.pending:
        return _Verdict("stale", _CAUSES.get(artefact.status, _UPSTREAM), remade=True)
    told = _by_stamp(artefact, stamp) if artefact.of_script else _by_record(artefact, plan)
    return told or (None if artefact.noted else _Verdict("unknown", _NO_NOTE))


def _by_stamp(artefact: Artefact, stamp: dict[str, Any] | None) -> _Verdict | None:
    if stamp is None:
        return _Verdict("unknown", f"it has no stamp {stamp_file(artefact.path).name}")
    if stamp["rule"] != artefact.rule or stamp["code"] != _code_of(artefact.rule):
        return _Verdict("stale", _OTHER_CODE)
    other = next((file for file, known in stamp["inputs"].items() if _digest(file) != known), None)
    return _Verdict("stale", f"it was made from another {other}", (other,)) if other else None


def _by_record(artefact: Artefact, plan: Plan) -> _Verdict | None:
    code = code_of_record(artefact.rule, artefact.path)
    if code is not None and code[0] != code[1]:
        return _Verdict("stale", _OTHER_CODE)
    other = other_input(artefact.rule, artefact.path, plan)
    return _Verdict("stale", f"it was made from another {other}", (str(other),)) if other else None


def _foreign(planned: set[Path]) -> Iterator[Finding]:
    """What no rule makes: whole folders, or single files."""
    known = planned | {stamp_file(path) for path in planned} | set(RESULTS.glob("report.*")) | _NO_RESULTS
    known |= {path.parent / name for path in planned for name in _BESIDE.get(path.parts[1], ())}
    folders = {folder for path in planned for folder in path.parents}

    def look(folder: Path) -> Iterator[Finding]:
        for path in sorted(folder.iterdir()):
            if path in folders and path.is_dir() and not path.is_symlink():
                yield from look(path)
            elif path not in known and not path.name.startswith(".snakemake"):
                yield Finding(str(path), "foreign", "made by no rule of this configuration", None, _FOREIGN)

    if RESULTS.is_dir():
        yield from look(RESULTS)


def _other_descriptions(plan: Plan) -> Iterator[Finding]:
    """The `run.json`, which are for people, that do not describe the run in whose folder they lie."""
    for run, planned in plan.runs.items():
        path = RESULTS / "runs" / run / "run.json"
        try:
            same = not path.exists() or parse_json(path.read_bytes()) == _described(planned.run)
        except (OSError, ValueError):
            same = False
        if not same:
            why = "it does not describe this run; the records beside it do"
            yield Finding(str(path), "damaged", why, "train", f"rm -f {shlex.quote(str(path))}")


def _described(run: Run) -> dict[str, Any]:
    """What a job writes of a run that it is given as text, which leaves out where data lie."""
    return Run.model_validate_json(run.canonical()).model_dump(mode="json", exclude_none=True)


def _other_versions(artefacts: Iterable[Artefact]) -> list[str]:
    """Versions behind stamped and recorded artefacts that are not those here; by design they make nothing stale."""
    here = versions()
    others: set[str] = set()
    for artefact in artefacts:
        if not artefact.of_script:
            others |= other_versions(artefact.rule, artefact.path)
        elif stamp := read_stamp(artefact.path):
            others |= {f"{name} {number}" for name, number in stamp["versions"].items() - here.items()}
    return [f"note: some of it was made with {', '.join(sorted(others))}"] if others else []


@cache
def _code_of(rule: str) -> str:
    return fingerprint(f"scripts/{rule}.py")


@cache
def _digest(file: str) -> str | None:
    return digest(Path(file)) if Path(file).is_file() else None
