"""The part `model` of the suite."""

from tests.outside.model.promises import PROMISES
from tests.outside.model.run import run
from tests.outside.parts import Part

MODEL = Part("model", run, PROMISES)
