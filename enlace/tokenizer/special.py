"""Los 32 tokens especiales: ocupan los últimos ids de cualquier vocabulario de ENLACE, siempre en este orden."""

END_OF_TEXT = "<|endoftext|>"
IM_START = "<|im_start|>"
IM_END = "<|im_end|>"

SPECIAL_TOKENS = (END_OF_TEXT, IM_START, IM_END, *(f"<|reserved_{k}|>" for k in range(29)))
