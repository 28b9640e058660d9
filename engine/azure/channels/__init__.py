"""The channels over which digests reach people: mail, webhooks of chats, and SMTP."""
