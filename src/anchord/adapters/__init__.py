"""One outside thing each. They know the nouns of `model` and nothing above."""
