"""De texto a ids y de ids a texto."""

from enlace.tokenizer.byte import ByteTokenizer
from enlace.tokenizer.special import END_OF_TEXT, IM_END, IM_START, SPECIAL_TOKENS

__all__ = ["END_OF_TEXT", "IM_END", "IM_START", "SPECIAL_TOKENS", "ByteTokenizer"]
