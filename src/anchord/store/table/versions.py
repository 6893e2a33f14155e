"""The versions of the table's schema."""

from __future__ import annotations

SCHEMA_VERSION = 6
"""Since 6 the full-text index cuts Chinese and Japanese, and a row that lacks its own vector can
have a provisional one. Since 5 a row says what its chunk is: its type, language, heading level and
tokens."""
SEVERAL_MODELS_VERSION = 7
"""The version of a table with columns for the vectors of further models, which an older anchord
would take for damage. The next version of all tables is 8."""
FIRST_PROVISIONAL_VECTORS_VERSION = 6
"""The first version whose rows can have a provisional vector, which an older anchord would take
for damage."""
FIRST_WITHOUT_VECTORS_VERSION = 4
"""The first version whose rows can lack their vector."""
FIRST_CHECKSUM_VERSION = 2
"""The first version whose rows have a hash and a checksum."""
VERSION_METADATA_KEY = "anchord.schema"
MODEL_METADATA_KEY = "anchord.model"
"""Where the version, and the model of the vectors, are noted in a table's schema."""
