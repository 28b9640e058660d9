"""Service Bus, Storage Queues and Event Grid."""
