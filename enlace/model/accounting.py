"""Lo que cuesta un modelo, a partir de su forma: parámetros, FLOP y memoria."""

from enlace.config import schema


def n_matmul_parameters(config: schema.Model) -> int:
    """Parámetros que multiplican a cada token: matrices de los bloques y cabeza. Consultar el embedding no cuenta."""
    return n_block_parameters(config) + _embedding(config)


def n_block_parameters(config: schema.Model) -> int:
    """Parámetros de las matrices de los bloques."""
    return config.n_layers * _block_matrices(config)


def n_parameters(config: schema.Model) -> int:
    """Todos los parámetros; un embedding atado a la cabeza se cuenta una vez."""
    norms = config.n_layers * 2 * (config.d_model + config.head_dim) + config.d_model
    untied_embedding = 0 if config.tie_embeddings else _embedding(config)
    return n_matmul_parameters(config) + norms + untied_embedding


def flops_per_token(config: schema.Model, sequence_length: int) -> int:
    """FLOP de ida y vuelta por token entrenado: 6 por parámetro multiplicado más 12·L·H·C·T de atención.

    Es la convención de PaLM (Chowdhery et al., 2022, apéndice B): la atención se cuenta entera aunque la máscara
    causal ahorre la mitad, y las normas, RoPE y la softmax no se cuentan.
    """
    attention = 12 * config.n_layers * config.n_heads * config.head_dim * sequence_length
    return 6 * n_matmul_parameters(config) + attention


def orthogonalization_flops(config: schema.Model, ns_steps: int) -> int:
    """FLOP que Muon gasta por paso en ortogonalizar las matrices de los bloques.

    Cada pasada de Newton–Schulz sobre M×N (M ≤ N) son tres productos: 4·M²·N + 2·M³.
    """
    per_pass = sum(4 * min(shape) ** 2 * max(shape) + 2 * min(shape) ** 3 for shape in _block_shapes(config))
    return config.n_layers * ns_steps * per_pass


def cache_bytes(config: schema.Model, tokens: int, bytes_per_value: int) -> int:
    """Bytes de la caché de claves y valores de `tokens` tokens."""
    return 2 * config.n_layers * config.n_kv_heads * config.head_dim * tokens * bytes_per_value


def activation_bytes(
    config: schema.Model,
    batch: int,
    sequence_length: int,
    bytes_per_value: int,
    loss_chunk_tokens: int,
    attention: schema.Attention = "math",
) -> int:
    """Bytes, aproximados, que una pasada de entrenamiento guarda hasta su vuelta.

    bytes_per_value: ancho de las multiplicaciones (2 o 4); el flujo residual y las normas van siempre en float32.
    `math` guarda además las probabilidades, que crecen con el cuadrado de la secuencia.
    """
    tokens = batch * sequence_length
    per_token = config.n_layers * _block_values_bytes(config, bytes_per_value) + 4 * 4 * config.d_model
    if attention == "math":
        per_token += config.n_layers * config.n_heads * sequence_length * 4
    chunk = min(loss_chunk_tokens, tokens) * config.vocab_size * (4 + 2 * bytes_per_value)
    return tokens * per_token + chunk + 4 * _embedding(config)


def _embedding(config: schema.Model) -> int:
    return config.vocab_size * config.d_model


def _block_matrices(config: schema.Model) -> int:
    return sum(rows * columns for rows, columns in _block_shapes(config))


def _block_shapes(config: schema.Model) -> list[tuple[int, int]]:
    """Consultas y salida, claves y valores, y las tres del SwiGLU; da igual si traspuestas."""
    queries, keys = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    return [(config.d_model, width) for width in (queries, queries, keys, keys, *3 * (config.d_ff,))]


def _block_values_bytes(config: schema.Model, width: int) -> int:
    """Bytes por token que guarda un bloque: entrada y salida normalizada de las normas, atención y SwiGLU."""
    queries, keys = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    norms = 4 * (2 * 2 * config.d_model + 2 * (queries + keys)) + width * 2 * config.d_model
    mixing = width * 4 * queries
    return norms + mixing + width * 4 * config.d_ff
