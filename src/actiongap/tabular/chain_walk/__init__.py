"""The paper's numerical experiment on the chain walk: its numbers, its figures, and a page to play it on."""
