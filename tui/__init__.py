"""The app: command line, screens, keys, and the thread that runs the engine."""
