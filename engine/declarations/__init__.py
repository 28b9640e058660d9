"""The declarations of a deployment: its workflows, agents, services and credentials."""
