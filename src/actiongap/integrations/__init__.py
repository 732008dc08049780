"""The operators in other libraries' agents: one module per library, the only place that imports it."""
