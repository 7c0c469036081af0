"""What the system tests share: a service under test, a raw HTTP client, a leak check."""
