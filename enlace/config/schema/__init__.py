"""Qué claves hay, de qué tipo, con qué límites."""

from enlace.config.schema.agent import (
    Agent,
    Backend,
    BackendName,
    Cache,
    Cooldown,
    Page,
    Region,
    Role,
    SafeSearch,
    Search,
    TimeRange,
    Web,
)
from enlace.config.schema.corpus import (
    Contamination,
    Corpus,
    Duplicates,
    Language,
    Limits,
    Mixture,
    PrivacyKind,
    Quality,
    TextSource,
)
from enlace.config.schema.data import Data, Source
from enlace.config.schema.hardware import Attention, DType, Hardware
from enlace.config.schema.model import Model
from enlace.config.schema.run import LAYERS, Run, Sample
from enlace.config.schema.train import Anomalies, Checkpoints, Evaluation, Optimizer, Schedule, Train

__all__ = [
    "LAYERS",
    "Agent",
    "Anomalies",
    "Attention",
    "Backend",
    "BackendName",
    "Cache",
    "Checkpoints",
    "Contamination",
    "Cooldown",
    "Corpus",
    "DType",
    "Data",
    "Duplicates",
    "Evaluation",
    "Hardware",
    "Language",
    "Limits",
    "Mixture",
    "Model",
    "Optimizer",
    "Page",
    "PrivacyKind",
    "Quality",
    "Region",
    "Role",
    "Run",
    "SafeSearch",
    "Sample",
    "Schedule",
    "Search",
    "Source",
    "TextSource",
    "TimeRange",
    "Train",
    "Web",
]
