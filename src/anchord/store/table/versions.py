"""The versions of the table's schema. Imports nothing: the compaction process needs only this."""

from __future__ import annotations

SCHEMA_VERSION = 4
"""Since 4 a row can lack its vector. The columns are those of 3."""
FIRST_CURRENT_COLUMNS_VERSION = 3
"""The first version with the present columns: compaction raises its number to the newest."""
FIRST_CHECKSUM_VERSION = 2
"""The first version whose rows have a hash and a checksum."""
VERSION_METADATA_KEY = "anchord.schema"
"""Where the version is noted in the metadata of a table's schema."""
