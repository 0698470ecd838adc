"""THE call path: resolve, policy, arguments, execute, shape, record, activate. Every call goes here."""
