"""The channels that send digests to people: email, chat webhooks and SMTP."""
