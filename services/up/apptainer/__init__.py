"""The stack under Apptainer: the native way's processes, each out of an image; nobody need be root."""
