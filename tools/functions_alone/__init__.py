"""The embedded stack: Azurite, the local Service Bus, the Functions host, the Event Grid stand-in."""
