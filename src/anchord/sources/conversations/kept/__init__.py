"""The transcripts themselves, byte for byte: `transcripts.sqlite`."""
