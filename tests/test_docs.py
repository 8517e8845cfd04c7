"""The documentation is true: its code runs, imports the public API only, and names real commands.

A code block that cannot run in a test says so in a comment before it: `<!-- not run: REASON -->`.
One that needs other packages names them, `<!-- needs: spacy, mteb -->`, and runs where they are.
Blocks of other libraries (AllenNLP's, simple_elmo's) are not ours to run.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from tests.conftest import GOLDEN, REPOSITORY

import elmokit
from elmokit import Elmo

PUBLIC = {
    "elmokit",
    *(f"elmokit.{name}" for name in "lm nn probe serve tasks train vectors".split()),
}
"""Packages that users import from."""
COMPAT = {f"elmokit.compat.{name}" for name in "allennlp bilm many_langs simple_elmo".split()}
INTEGRATIONS = {
    f"elmokit.integrations.{path.stem}"
    for path in (REPOSITORY / "src" / "elmokit" / "integrations").glob("*.py")
    if path.stem not in {"__init__", "loaded_models", "saved_model"}
}
FOREIGN = {"allennlp", "simple_elmo", "elmoformanylangs"}
PAGES = sorted(
    [
        REPOSITORY / "README.md",
        REPOSITORY / "CONTRIBUTING.md",
        REPOSITORY / "SECURITY.md",
        REPOSITORY / "examples" / "README.md",
        REPOSITORY / "src" / "elmokit" / "builtin" / "README.md",
        *(REPOSITORY / "docs").glob("*.md"),
    ]
)


@dataclass(frozen=True)
class Block:
    """One fenced code block of a page."""

    page: Path
    line: int
    language: str
    code: str
    not_run: str
    """Why it is not run, if it is not."""

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"


def blocks(page: Path, language: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    pattern = r"(?:<!-- (not run|needs): ([^>]*?) -->\n+)?^```(\w+)\n(.*?)^```"
    found = []
    for match in re.finditer(pattern, text, re.DOTALL | re.MULTILINE):
        not_run = match[2] or ""
        if match[1] == "needs":
            not_run = ", ".join(name for name in not_run.split(", ") if find_spec(name) is None)
        if match[3] == language:
            line = text.count("\n", 0, match.start(4))
            found.append(Block(page, line, language, match[4], not_run))
    return found


def imported(code: str) -> list[tuple[str, str]]:
    """The (module, name) pairs that code imports; name is empty for `import module`."""
    pairs = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            pairs += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            pairs += [(node.module or "", alias.name) for alias in node.names]
    return pairs


def check_imports(code: str, where: str) -> None:
    for module, name in imported(code):
        if module.partition(".")[0] != "elmokit":
            continue
        public = PUBLIC | COMPAT | INTEGRATIONS
        assert module in public, f"{where} imports {module}, which is not public"
        if module in INTEGRATIONS:  # its own page checks the names, where its library is installed
            continue
        if name and f"{module}.{name}" not in PUBLIC:
            found = importlib.import_module(module)
            assert name in getattr(found, "__all__", dir(found)), f"{where}: {module}.{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_import_the_public_api_only(page: Path) -> None:
    for block in blocks(page, "python"):
        check_imports(block.code, block.where)


def test_docstring_examples_import_the_public_api_only() -> None:
    for path in (REPOSITORY / "src" / "elmokit").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                for line in (ast.get_docstring(node) or "").splitlines():
                    if re.match(r"\s*(from elmokit\S* import|import elmokit)", line):
                        check_imports(line.strip().partition("(")[0], str(path))


EXAMPLES = sorted(path for path in (REPOSITORY / "examples").glob("*.*") if path.suffix != ".md")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_import_the_public_api_only(path: Path) -> None:
    """That they run is checked by `examples/check.py` in CI: some need heavy packages."""
    code = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(code)["cells"] if cell["cell_type"] == "code"]
        code = "\n".join("".join(cell["source"]) for cell in cells)
    for module, name in imported(code):
        if not module.startswith("elmokit.integrations."):
            check_imports(f"from {module} import {name}" if name else f"import {module}", path.name)


def test_every_example_is_listed_and_has_its_output() -> None:
    page = (REPOSITORY / "examples" / "README.md").read_text(encoding="utf-8")
    names = [path.name for path in EXAMPLES if path.name != "check.py"]
    assert [name for name in names if f"]({name})" not in page] == []
    assert len([n for n in names if n.endswith(".py")]) >= 8
    assert len([n for n in names if n.endswith(".ipynb")]) >= 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_the_text_exist(page: Path) -> None:
    """`elmokit.train.pretrain` between backticks is a public name."""
    for name in re.findall(r"`(elmokit(?:\.\w+)+)", page.read_text(encoding="utf-8")):
        parts = name.split(".")
        others = {"elmokit.compat", "elmokit.integrations", "elmokit.Tok2Vec"}
        if name in COMPAT | INTEGRATIONS or ".".join(parts[:2]) in others:
            continue
        package = ".".join(parts[:2]) if ".".join(parts[:2]) in PUBLIC else "elmokit"
        rest = parts[package.count(".") + 1 :]
        if rest:
            assert rest[0] in importlib.import_module(package).__all__, f"{page.name}: {name}"


@pytest.mark.parametrize("package", sorted(PUBLIC))
def test_the_api_page_lists_every_public_name(package: str) -> None:
    page = (REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8")
    names = [n for n in importlib.import_module(package).__all__ if not n.startswith("_")]
    missing = [name for name in names if f"`{name}" not in page and f".{name}`" not in page]
    assert not missing, f"docs/api.md lacks {missing} of {package}"


@pytest.mark.parametrize("package", sorted(PUBLIC))
def test_every_public_name_can_be_imported_and_is_documented(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        if callable(value) and not name.startswith("_"):
            assert (value.__doc__ or "").strip(), f"{package}.{name} has no docstring"


# -- running the code ----------------------------------------------------------------------------


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the files that the pages name."""
    model = Elmo.load(GOLDEN / "models" / "plain")
    model.save(tmp_path / "weights.hdf5")
    model.save(tmp_path / "model_dir_or.zip")
    shutil.copytree(GOLDEN / "tf" / "trained", tmp_path / "training_dir")
    shutil.copytree(GOLDEN / "many_langs" / "models" / "plain", tmp_path / "path/to/zht.model")
    sentences = "She went to the bank .\nThe river was wide .\n"
    (tmp_path / "sentences.txt").write_text(sentences)
    texts = tmp_path / "texts"
    texts.mkdir()
    words = "bank river money water boat loan".split()
    (texts / "a.txt").write_text(
        "\n".join(f"The {one} is near the {two} ." for one in words for two in words for _ in "ab")
    )
    entities = "Ada B-PER\nLovelace I-PER\nlived O\nin O\nLondon B-LOC\n. O\n\n"
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.conll").write_text(entities * 4)
    if find_spec("torch") is not None:
        from elmokit.tasks import Settings, Trained

        settings = Settings(task="ner", elmo="none", vectors="none")
        labels = {"types": ["LOC", "PER"]}
        Trained.assemble(settings, labels, ["in"], None).save(tmp_path / "ner-model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUN = [page for page in PAGES if any(not block.not_run for block in blocks(page, "python"))]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page: Path, workplace: Path) -> None:
    """All blocks of a page, in order, in one namespace; shapes in comments are checked."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page, "python"):
        foreign = {module.partition(".")[0] for module, _ in imported(block.code)} & FOREIGN
        if block.not_run or foreign:
            continue
        checked = re.sub(
            r"^( *)(\S.*?) +# (\([\d, ]+\)).*$", r"\1assert \2 == \3", block.code, flags=re.M
        )
        try:
            exec(compile(checked, block.where, "exec"), namespace)
        except Exception as error:
            raise AssertionError(f"{block.where}: {error!r}") from error


# -- commands ------------------------------------------------------------------------------------


def command_lines() -> list[tuple[str, str]]:
    lines = []
    for page in PAGES:
        for block in blocks(page, "sh"):
            for line in block.code.replace("\\\n", " ").splitlines():
                for part in line.split("&&"):
                    if part.strip().startswith("elmo "):
                        lines.append((block.where, part.strip()))
    return lines


def test_commands_and_options_in_the_pages_exist() -> None:
    from elmokit.cli import elmo

    lines = command_lines()
    assert len(lines) > 30
    for where, line in lines:
        words = shlex.split(line, comments=True)[1:]
        command: click.Command = elmo
        context = click.Context(elmo)
        while isinstance(command, click.Group) and words:
            found = command.get_command(context, words[0])
            assert found is not None, f"{where}: {line}"
            command, words = found, words[1:]
        known = {name for parameter in command.params for name in parameter.opts}
        for word in words:
            if re.match(r"--?[a-z]", word):
                assert word.partition("=")[0] in known | {"--help"}, f"{where}: {line}: {word}"


def test_the_output_in_the_readme_is_what_the_command_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from elmokit.cli import main

    readme = REPOSITORY / "README.md"
    monkeypatch.setenv("COLUMNS", "80")
    command = next(line for where, line in command_lines() if where.startswith("README.md"))
    with pytest.raises(SystemExit):
        main(shlex.split(command)[1:])
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert blocks(readme, "text")[0].code.splitlines() == printed


def test_version_is_stated_once() -> None:
    """The citation file and the changelog cannot read it from the package: they are compared."""
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", elmokit.__version__)
    citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [elmokit.__version__]
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\d.*)$", changelog, re.MULTILINE)[0] == elmokit.__version__
