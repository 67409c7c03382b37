"""Trees as plain dictionaries beside a server: every operation and every answer is predicted from the docs alone."""
