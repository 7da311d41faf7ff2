"""El entrenamiento: pasos, puntos de control y reanudación exacta en la placa que haya."""
