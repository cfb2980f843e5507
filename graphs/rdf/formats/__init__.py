"""RDF as text: Turtle, JSON-LD and N-Triples, written and read without network access."""
