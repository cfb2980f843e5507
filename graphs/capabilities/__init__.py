"""What tools can do, from broad to narrow; ``retrievers.capabilities`` finds which tool has which capability."""
