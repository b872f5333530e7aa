"""What the command line can do, one module each: ``add_arguments(parser)`` and ``run(arguments) -> exit status``."""
