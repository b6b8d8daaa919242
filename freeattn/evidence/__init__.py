"""Does simulated attention agree with its limiting law: sampling, comparison, and a report with a verdict."""
