"""What pyproject.toml cannot say.

The wheel carries the quickstart and its data, which lie outside of the packages.

They keep their places below one folder, so that the experiments find the data as they
do in a checkout.
"""

from setuptools import find_packages, setup

DEMO = {
    "harness.demo.experiments": "experiments",
    "harness.demo.datasets.survey-templates-en": "datasets/survey-templates-en",
}
"""Where it lies when it is installed -> where it lies here."""

setup(
    packages=[*find_packages(include=["harness*", "retrievers*"]), *DEMO],
    package_dir=DEMO,
    package_data={
        "": ["py.typed", "templates/*", "templates/scripts/*"],
        "harness.demo.experiments": ["quickstart*.toml", "experiment.schema.json"],
        "harness.demo.datasets.survey-templates-en": ["*"],
    },
)
