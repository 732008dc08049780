"""The paper's numerical experiment on the chain walk: its numbers and its figures."""
