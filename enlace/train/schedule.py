"""La tasa de aprendizaje como función pura del paso: reanudar no tiene nada que recordar."""

import math

from enlace.config.schema import Schedule


def learning_rate_factor(schedule: Schedule, step: int, steps: int) -> float:
    """Factor (0–1] de la tasa en el paso `step` (desde 0) de una corrida de `steps`.

    Calentamiento lineal y después: wsd, meseta y descenso lineal (Hu y otros, 2024, MiniCPM); cosine, medio coseno
    (Loshchilov y Hutter, 2017). `final_ratio` se alcanzaría justo tras el último paso: así ni el primero ni el
    último se malgastan con una tasa cero.
    """
    if step < schedule.warmup_steps:
        return (step + 1) / schedule.warmup_steps
    if schedule.kind == "cosine":
        progress = (step - schedule.warmup_steps) / max(1, steps - schedule.warmup_steps)
        return schedule.final_ratio + (1 - schedule.final_ratio) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    into_decay = step - (steps - schedule.decay_steps)
    if into_decay <= 0:
        return 1.0
    return 1.0 - (1 - schedule.final_ratio) * min(1.0, into_decay / schedule.decay_steps)
