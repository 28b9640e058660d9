"""What a deployment declares: its workflows, agents, services and credentials."""
