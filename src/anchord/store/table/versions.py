"""The versions of the table's schema."""

from __future__ import annotations

SCHEMA_VERSION = 6
"""Since 6 the full-text index cuts Chinese and Japanese, and since 5 a row says what its chunk is:
its type, language, heading level and tokens."""
FIRST_WITHOUT_VECTORS_VERSION = 4
"""The first version whose rows can lack their vector."""
FIRST_CHECKSUM_VERSION = 2
"""The first version whose rows have a hash and a checksum."""
VERSION_METADATA_KEY = "anchord.schema"
"""Where the version is noted in the metadata of a table's schema."""
