"""Descriptions of the parameters: the docstring, the signature and the checks of `Embedder` agree."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from dataclasses import fields
from typing import get_args

import pytest

from ripplevec import parameters
from ripplevec.embedder import Embedder
from ripplevec.parameter_docs import ParameterDoc, describe_parameters

DOCS = describe_parameters()


def test_parameter_docs_follow_the_signature_of_embedder() -> None:
    signature = inspect.signature(Embedder)
    assert list(DOCS) == list(signature.parameters)
    assert {name: doc.default for name, doc in DOCS.items()} == {
        name: parameter.default for name, parameter in signature.parameters.items()
    }


def test_parameter_fields_of_embedder_and_parameters_have_the_same_names_and_types() -> None:
    assert {field.name: field.type for field in fields(Embedder)} == {
        field.name: field.type for field in fields(parameters.Parameters)
    }


@pytest.mark.parametrize("doc", DOCS.values(), ids=DOCS)
def test_parameter_doc_states_the_default_of_the_signature(doc: ParameterDoc) -> None:
    lines = (inspect.getdoc(Embedder) or "").splitlines()
    (heading,) = (line for line in lines if line.startswith(f"{doc.name} : "))
    assert ast.literal_eval(heading.rpartition(", default ")[2]) == doc.default


@pytest.mark.parametrize("doc", DOCS.values(), ids=DOCS)
def test_parameter_doc_has_a_summary_of_one_sentence(doc: ParameterDoc) -> None:
    assert doc.summary[0].isupper()
    assert doc.summary.endswith(".")
    assert len(doc.summary) <= 110
    assert doc.description.startswith(doc.summary)


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("rule", parameters.RuleName),
        ("duplicates", parameters.DuplicatePolicy),
        ("storage", parameters.Storage),
        ("search", parameters.SearchMethod),
        ("on_empty", parameters.EmptyInfluence),
        ("normalization", parameters.LaplacianNormalization),
        ("components", parameters.LaplacianComponents),
    ],
)
def test_parameter_choices_equal_those_of_the_type_and_are_accepted(name: str, choices: object) -> None:
    assert DOCS[name].choices == get_args(choices)
    for choice in DOCS[name].choices:
        if choice != "ann":  # needs an optional dependency
            Embedder(**{name: choice})


def test_parameter_without_fixed_choices_has_none() -> None:
    assert DOCS["dim"].choices == DOCS["views"].choices == ()


def test_parameter_docs_are_read_without_heavy_imports() -> None:
    code = (
        "import sys; from ripplevec.parameter_docs import describe_parameters; describe_parameters(); "
        "print([name for name in ('numpy', 'numba', 'pyarrow', 'scipy', 'ripplevec.embedder') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
