"""The queue on paper: who waits how long in front of a server that works in batches, and which policy to choose.

This is also what users type: ``from deep_learning_cases import batching``.
"""

from deep_learning_cases.batching.arrivals import Bursts, Poisson, Regular, Trace, arrival_times_s
from deep_learning_cases.batching.choice import Choice, Objective, Reading, choose_policy, default_candidates
from deep_learning_cases.batching.queueing import Policy
from deep_learning_cases.batching.service_times import (
    Constant,
    Exponential,
    Linear,
    Measured,
    Mix,
    ServiceTime,
    read_measured,
)
from deep_learning_cases.batching.simulation import Result, load, simulate, summarise
from deep_learning_cases.batching.summary import Summary

__all__ = [
    "Bursts",
    "Choice",
    "Constant",
    "Exponential",
    "Linear",
    "Measured",
    "Mix",
    "Objective",
    "Poisson",
    "Policy",
    "Reading",
    "Regular",
    "Result",
    "ServiceTime",
    "Summary",
    "Trace",
    "arrival_times_s",
    "choose_policy",
    "default_candidates",
    "load",
    "read_measured",
    "simulate",
    "summarise",
]
