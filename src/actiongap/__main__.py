"""`python -m actiongap` is the command `actiongap`."""

from actiongap.command import main

main()
